"""A sixth kind of plan, as somebody would add one: everything goes to everybody, in one multicast group."""
