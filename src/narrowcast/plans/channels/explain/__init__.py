"""Channel plans explained: a flow, a session, a group, a subscriber."""
