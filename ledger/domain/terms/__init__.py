"""What two parties agreed on: objectives, periods, compensation, and the life of an agreement."""
