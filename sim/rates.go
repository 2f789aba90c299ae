package sim

// The rates were fitted by "make bench-steps BENCHFLAGS=-fit" on two cores of an AMD EPYC. Package
// bench/steps says how. "make bench-steps" prints measured and modelled Steps.

// otherRate is for events without a row: they are rare.
var otherRate = Rate{3000, 100, 1000, 50, 5}

// jobRates has the Steps of job trackers: leaders, and "followed" for entries on followers.
var jobRates = map[string]Rate{
	"Allocated":           {1200, 0, 3100, 320, 17},
	"Heartbeat":           {0, 140, 290, 5.0, 0.5},
	"Hello":               {170, 0, 0, 0, 0},
	"HistoryWritten":      {12000, 0, 0, 11, 9.1},
	"HomeReport":          {280, 0, 3800, 8.1, 0.4},
	"Inventory":           {690, 0, 0, 0, 1.5},
	"PoolsRead":           {450, 0, 0, 0.8, 0.3},
	"Report":              {6600, 0, 0, 4.3, 8.1},
	"Report of a map":     {3000, 0, 220, 66, 0},
	"Report of a reduce":  {7800, 0, 5800, 69, 15},
	"Report of a service": {18000, 0, 0, 0, 25},
	"SplitsLoaded":        {15000, 0, 1500, 0, 510},
	"StagingRemoved":      {4100, 0, 0, 0, 13},
	"Submit":              {610, 0, 0, 10, 0.9},
	"Tick":                {240, 0, 29000, 11, 16},
	"Tick with a plan":    {0, 190, 910, 560, 37},
	"committed":           {4600, 0, 3500, 36, 6.5},
	"committing":          {4200, 0, 0, 44, 11},
	"digests-known":       {6100, 0, 0, 31, 4.0},
	"ended":               {0, 2900, 170, 85, 41},
	"followed":            {1100, 1300, 490, 28, 2.5},
	"granted":             {4500, 0, 0, 32, 8.6},
	"plan of fifo":        {760, 910, 60, 0, 14},
	"plan of flex":        {0, 1800, 2200, 0, 0},
	"registered":          {4500, 0, 7.0, 0, 4.9},
	"splits-written":      {1400, 0, 2800, 0, 30},
	"submitted":           {25000, 0, 0, 80, 36},
	"swept":               {2100, 0, 0, 38, 13},
}

// taskRates has the Steps of task trackers.
var taskRates = map[string]Rate{
	"Ack":            {55, 0, 0, 49, 0},
	"CommitReady":    {1200, 0, 0, 11, 1.6},
	"DropJob":        {870, 0, 470, 320, 0},
	"FetchDone":      {98, 0, 260, 140, 4.4},
	"Grant":          {1800, 0, 0, 20, 3.2},
	"Launch":         {1400, 0, 0, 300, 1.6},
	"MergeDone":      {0, 0, 310, 0, 17},
	"NonceRead":      {230, 0, 0, 0, 0.7},
	"Outputs":        {0, 0, 2400, 93, 4.7},
	"Recorded":       {1900, 0, 0, 110, 1.9},
	"Refuse":         {180, 0, 0, 0, 0},
	"RestoreEnded":   {39, 0, 0, 0, 0.4},
	"SetHome":        {0, 95, 450, 100, 3.0},
	"Staging":        {470, 0, 0, 0, 0.9},
	"StreamUp":       {190, 0, 0, 0, 0.5},
	"Tick":           {0, 0, 200, 110, 0.7},
	"Welcome":        {690, 0, 0, 0, 1.4},
	"WorkerDone":     {1100, 0, 2100, 95, 4.0},
	"WorkerExited":   {600, 0, 0, 54, 0.9},
	"WorkerHello":    {2200, 0, 0, 190, 3.3},
	"WorkerProgress": {200, 0, 310, 95, 1.6},
}
