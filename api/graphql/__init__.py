"""GraphQL at POST /graphql: the same questions as REST, decided by the same access policy."""
