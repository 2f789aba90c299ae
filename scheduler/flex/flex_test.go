package flex_test

import (
	"math"
	"time"
)

func seconds(x float64) time.Duration { return time.Duration(math.Round(x * float64(time.Second))) }
