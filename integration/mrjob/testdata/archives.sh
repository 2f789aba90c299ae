# Stands in for archives.py in a replay: the same records, by awk.
case "$*" in
*--mapper*) awk '
	BEGIN { split("packed/en/list names.zip/list plain/below/list", lists, " "); for (i in lists) while ((getline < lists[i]) > 0) name[$1] = $2 }
	{ for (i = 1; i <= NF; i++) { print "\"" ($i in name ? name[$i] : $i) "\"\t1"; print "reporter:counter:words,read,1" > "/dev/stderr" } }' ;;
*) awk -F '\t' '$1 != k { if (k != "") print k "\t" n; k = $1; n = 0 } { n += $2 } END { if (k != "") print k "\t" n }' ;;
esac
