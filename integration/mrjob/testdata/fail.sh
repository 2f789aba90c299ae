# Stands in for fail.py in a replay.
cat > /dev/null
echo 'ValueError: bad line: violets.are.blue' >&2
exit 1
