package machine

import (
	"os/exec"
	"strconv"

	"github.com/quernmr/quern/bench/testbed"
)

// rawCopy does the input and output of a sort with map outputs, without the sort: it cuts the file $1 into $3 shares,
// copies each to a file in $2, and copies that file again. The shares are copied at the same time.
const rawCopy = `set -e
mkdir "$2"
size=$(stat -c %s "$1")
blocks=$(( (size + 262144*$3 - 1) / (262144*$3) ))
for i in $(seq 0 $(($3 - 1))); do
	{ dd if="$1" of="$2/map$i" bs=256k skip=$((i*blocks)) count=$blocks && dd if="$2/map$i" of="$2/out$i" bs=256k && rm "$2/map$i"; } 2> "$2/log$i" &
done
wait
test "$(cat "$2"/out* | wc -c)" = "$size"
`

// rawIO compares the sort with its own reads and writes. Inputs larger than the memory show what a full page cache costs.
func (b *bench) rawIO() ([]string, error) {
	raw := exec.Command("sh", "-c", rawCopy, "sh", b.Path("lines"), b.Path("peer"), strconv.Itoa(b.Cores))
	ours, theirs, err := b.pair(b.job("sort", "lines", "-D", "mapreduce.job.reduces="+strconv.Itoa(b.Cores)), raw)
	if err != nil {
		return nil, err
	}
	return []string{testbed.Speed(b.Bytes, ours), testbed.Speed(b.Bytes, theirs), testbed.Ratio(theirs, ours), "≥ 0.83 from 6 GB"}, nil
}
