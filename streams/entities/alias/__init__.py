"""What a turn tells of the names of entities: that two are of one."""
