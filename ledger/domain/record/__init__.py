"""What the log stores: events, their canonical bytes, the names of their streams, the values their payloads share."""
