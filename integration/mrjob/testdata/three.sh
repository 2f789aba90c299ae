# Stands in for three.py in a replay: the same records, by awk.
case "$*" in
*--step-num=0*--mapper*) awk -v stop=stop.txt '
	BEGIN { while ((getline w < stop) > 0) no[w] = 1 }
	{ for (i = 1; i <= NF; i++) if (!($i in no)) { print "\"" $i "\"\t1"; print "reporter:counter:words,kept,1" > "/dev/stderr" } }' ;;
*--step-num=1*--mapper*) awk -F '\t' '{ print $2 "\t" $1 }' ;;
*--step-num=1*--reducer*) awk -F '\t' '{ print substr($2, 1, 2) "\"\t" $1 }' ;;
*) awk -F '\t' '$1 != k { if (k != "") print k "\t" n; k = $1; n = 0 } { n += $2 } END { if (k != "") print k "\t" n }' ;;
esac
