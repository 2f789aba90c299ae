package main

import "testing"

func TestMemory(t *testing.T) {
	for text, want := range map[string]int64{
		"512": 512, "1k": 1 << 10, "512m": 512 << 20, "16g": 16 << 30, "16G": 16 << 30, "2t": 2 << 40,
		"": 0, "g": 0, "-1g": 0, "1gb": 0, "1.5g": 0, "9223372036854775807k": 0,
	} {
		o := new(options)
		if err := o.setMemory(text); (err == nil) != (want > 0) || o.memory != want {
			t.Errorf("%q is %d bytes, want %d: %v", text, o.memory, want, err)
		}
	}
}
