package main

import (
	"strings"
	"testing"
)

func TestShardTables(t *testing.T) {
	cell := func(processes int, filtered bool) shardSample {
		return shardSample{
			Objects: 1000, Size: 4000, Processes: processes, Filtered: filtered, Anonymous: []int64{30e6, 20e6}, Peak: []int64{90e6, 95e6},
			Received: []int64{4e6, 3e6}, Seconds: 2, CPU: 1.5, Requests: 12, Rate: 300, LoadCPU: 0.002, QueueP99: 0.25, ReconcileP99: 0.5,
		}
	}
	limited := cell(1, false)
	limited.Memory = "200MiB"
	text := shardTables([]shardSample{cell(2, true), limited, cell(1, false), cell(2, false)})
	for _, want := range []string{
		"| 1,000 objects of 4 KB, in sync at the start | 1 process | 1 process, GOMEMLIMIT=200MiB | 2 processes | 2 processes, filtered |",
		"| anonymous memory of each, the largest | 30 MB | 30 MB | 30 MB | 30 MB |",
		"| resident memory of each at the peak, the largest | 95 MB |",
		"| received by each, the most | 4 MB |",
		"| requests of all until then, writes | 12, 0 |",
		"| queue p99, reconcile p99 under load, the slowest | 250 ms, 500 ms |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the tables lack %q:\n%s", want, text)
		}
	}
}
