"""XPath profiles over XML documents."""
