"""What people and programs use beside chats: one core of lookups and questions, and a folder for each surface."""
