"""The demand a channel plan was made for, as tables of its folder and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from narrowcast.model.arrays import Ints
from narrowcast.model.interest import Interest
from narrowcast.model.plan import Tables


def interest_tables(interest: Interest) -> dict[str, Any]:
    """The interest as the tables `flows` and `interest`, flows in their order."""
    import pyarrow as pa

    flows = names_of(interest.flow_names, np.arange(interest.n_flows))
    pairs = {
        "flow": names_of(interest.flow_names, interest.flow_of_pair),
        "subscriber": names_of(interest.user_names, interest.users),
    }
    return {"flows": pa.table({"flow": flows, "rate": interest.rates}), "interest": pa.table(pairs)}


def interest_of(plan: Tables) -> Interest:
    """The interest a channels plan was made for; users in the order of their first wish.

    >>> interest = Interest.from_pairs([0, 0, 1], [0, 1, 1], [5.0, 2.0], flow_names=["IBM", "MSFT"])
    >>> interest_of(Tables("channels", interest_tables(interest), {})).flow_names
    ('IBM', 'MSFT')
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    flows, pairs = plan.tables["flows"], plan.tables["interest"]
    names = flows["flow"].cast(pa.string()).combine_chunks()
    users = pairs["subscriber"].cast(pa.string()).combine_chunks()
    user_names = users.unique()
    return Interest.from_pairs(
        pc.index_in(pairs["flow"].cast(pa.string()), value_set=names).to_numpy(),
        pc.index_in(users, value_set=user_names).to_numpy(),
        flows["rate"].to_numpy(),
        flow_names=names.to_pylist(),
        user_names=user_names.to_pylist(),
    )


def names_of(names: tuple[str, ...] | None, indices: Ints | range) -> Any:
    """The names at these indices as an Arrow array; without names, the indices as text."""
    import pyarrow as pa

    if names is None:
        return pa.array(np.asarray(indices, np.int64)).cast(pa.string())
    return pa.array(names, pa.string()).take(pa.array(np.asarray(indices, np.int64)))
