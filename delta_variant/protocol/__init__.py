"""The Delta protocol: actions, properties, features, types, statistics and schemas."""
