-- The collections that are on their way to a layout, and the ones that they have.
SELECT name, layout FROM pgsimhash.collections WHERE next_layout = %(layout)s ORDER BY name
