"""Who may do what: accounts with credentials of their own, entitlements, and the gate that holds others to them."""
