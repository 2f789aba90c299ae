package setting

// Limits returns the limits of a job for records and for what is decompressed; 0: the default.
func Limits(property func(name string) string) (maxRecord int, maxRatio int64, err error) {
	record, err := Number(property, "quern.record.max.bytes")
	if err != nil {
		return 0, 0, err
	}
	ratio, err := Number(property, "quern.decompressed.ratio.max")
	return int(record), ratio, err
}
