package sim

import "time"

// handshakeTime is half of BenchmarkHandshake of package identity: the job tracker's side. A job tracker
// uses one processor for handshakes, beside that of its core.
const handshakeTime = 400 * time.Microsecond

// The rates were fitted by "make bench-steps BENCHFLAGS=-fit" on two cores of an AMD EPYC. Package
// bench/steps says how. "make bench-steps" prints measured and modelled Steps.

// otherRate is for events without a row: they are rare.
var otherRate = Rate{3000, 100, 1000, 50, 5}

// jobRates has the Steps of job trackers: leaders, and "followed" for entries on followers.
var jobRates = map[string]Rate{
	"Allocated":           {1500, 0, 3000, 300, 3.3},
	"EndAttempt":          {640, 0, 0, 10, 13},
	"Heartbeat":           {0, 140, 420, 4.0, 0.1},
	"Hello":               {190, 0, 0, 0, 0},
	"HistoryWritten":      {0, 0, 11000, 16, 0.2},
	"HomeReport":          {440, 0, 3800, 5.8, 0},
	"Inventory":           {990, 0, 0, 0, 0.3},
	"PoolsRead":           {670, 0, 350, 7.9, 0},
	"Report":              {1500, 0, 5400, 2.5, 1.4},
	"Report of a map":     {3300, 0, 210, 25, 0},
	"Report of a reduce":  {7600, 0, 2400, 0, 0},
	"Report of a service": {18000, 0, 0, 0, 13},
	"SplitsLoaded":        {15000, 0, 1400, 390, 320},
	"StagingRemoved":      {4300, 0, 0, 6.7, 3.9},
	"Submit":              {0, 0, 680, 11, 0},
	"Tick":                {580, 0, 340, 98, 0},
	"Tick with a plan":    {330, 120, 910, 690, 5.4},
	"committed":           {5000, 0, 1500, 24, 1.7},
	"committing":          {4500, 0, 1600, 23, 1.5},
	"digests-known":       {1600, 0, 4800, 25, 0.9},
	"ended":               {10000, 1600, 120, 130, 14},
	"followed":            {1500, 1100, 0, 21, 0.3},
	"granted":             {1500, 0, 3600, 26, 2.5},
	"plan of fifo":        {1400, 850, 61, 0, 3.1},
	"plan of flex":        {0, 1100, 3200, 0, 0},
	"registered":          {5100, 0, 0, 0, 0.6},
	"splits-written":      {4000, 0, 2700, 0, 8.6},
	"submitted":           {24000, 0, 0, 180, 0},
	"swept":               {2800, 0, 0, 13, 3.1},
}

// taskRates has the Steps of task trackers.
var taskRates = map[string]Rate{
	"Ack":            {74, 0, 0, 48, 0},
	"CommitReady":    {970, 0, 240, 34, 0.8},
	"DropJob":        {730, 0, 390, 280, 0},
	"FetchDone":      {650, 0, 370, 70, 2.5},
	"Grant":          {1600, 0, 0, 62, 1.0},
	"Kill":           {0, 0, 760, 130, 0.9},
	"Launch":         {1600, 0, 0, 380, 0.5},
	"MergeDone":      {18000, 0, 0, 0, 5.5},
	"NonceRead":      {340, 0, 0, 0, 0.2},
	"Outputs":        {0, 120, 2800, 130, 2.1},
	"Recorded":       {2300, 0, 0, 140, 0.1},
	"Refuse":         {210, 0, 0, 0, 0},
	"RestoreEnded":   {82, 0, 0, 0, 0},
	"SetHome":        {410, 9.1, 1300, 220, 1.0},
	"Staging":        {690, 0, 0, 0, 0},
	"StreamUp":       {240, 0, 0, 0, 0},
	"Tick":           {0, 0, 230, 140, 0.3},
	"Welcome":        {870, 0, 0, 0, 0.3},
	"WorkerDone":     {750, 0, 3300, 0, 0.9},
	"WorkerExited":   {0, 0, 860, 39, 0.3},
	"WorkerHello":    {0, 0, 3000, 180, 0.7},
	"WorkerProgress": {320, 0, 370, 85, 0.8},
}
