package migrate

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// What is known of a definition goes with it; what is known of others stays.
func TestForget(t *testing.T) {
	for _, crd := range []string{"a.example.com", "b.example.com"} {
		observe(crd)(Progress{Done: 2, Rewritten: 1, Refused: 1})
		left.DeleteLabelValues(crd) // as at the end of a migration
		pending.WithLabelValues(crd).Set(1)
	}
	all := func() (n int) {
		for _, of := range []prometheus.Collector{pending, left, migrated} {
			metrics := make(chan prometheus.Metric, 100)
			of.Collect(metrics)
			n += len(metrics)
		}
		return n
	}
	before := all()
	(&Auto{}).Forget("a.example.com")
	if n := before - all(); n != 3 { // one that is pending, and two results
		t.Errorf("%d metrics went", n)
	}
}
