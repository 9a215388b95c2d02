DELETE FROM {present} WHERE prefix_1 >= %(first)s AND prefix_1 < %(beyond)s
