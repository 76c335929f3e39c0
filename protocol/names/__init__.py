"""Names that mean something: topics, namespaces, handles, and which names are legal."""
