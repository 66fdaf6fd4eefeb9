"""What new facts name because of what they are made of, and of the names that their scope knows."""
