"""What finance does with credit lines: claims, bookings and exports."""
