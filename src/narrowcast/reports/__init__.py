"""Drawing: the parts that every report is built of. It knows no kind of plan."""
