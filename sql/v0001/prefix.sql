<%doc>The prefix of a simhash: the leading blocks of a permutation, moved together.</%doc>
<%def name="prefix(permutation, simhash)" filter="trim">
% for block, position in permutation.places:
${"" if loop.first else " | "}${"(" if position else ""}((${simhash} >> ${block.shift}) & ${block.mask})${f" << {position})" if position else ""}\
% endfor
</%def>
<%doc>What a prefix column holds: the prefix, with the collection's number above it.</%doc>
<%def name="scoped_prefix(permutation)" filter="trim">
(collection_id::bigint << ${collection_shift}) | ${prefix(permutation, "simhash")}
</%def>
