# Stands in for mrjob's example mr_word_freq_count in a replay: the same records, by awk.
case "$*" in
*--mapper*) awk '{ gsub(/[^A-Za-z0-9_'\'']+/, " "); for (i = 1; i <= NF; i++) print "\"" tolower($i) "\"\t1" }' ;;
*) awk -F '\t' '$1 != k { if (k != "") print k "\t" n; k = $1; n = 0 } { n += $2 } END { if (k != "") print k "\t" n }' ;;
esac
