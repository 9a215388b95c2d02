-- A collection that sets out for the layout refers to this row, and so waits.
SELECT FROM pgsimhash.layouts WHERE name = %(layout)s FOR UPDATE
