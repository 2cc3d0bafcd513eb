package webhook

import (
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The metrics of a definition go with its conversion: an alert about one that is gone would never end.
func TestForget(t *testing.T) {
	var forgotten []string
	p := &Publisher{Forget: func(name string) { forgotten = append(forgotten, name) }}
	of := func(name string, migrate bool) Served {
		return Served{Migrate: migrate, CRD: &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}}
	}
	for _, name := range []string{"a.example.com", "b.example.com", "c.example.com"} {
		published.WithLabelValues(name).Set(1)
	}
	before := count(published)
	p.forget([]Served{of("a.example.com", true), of("b.example.com", true), of("c.example.com", false)})
	p.forget([]Served{of("a.example.com", true), of("b.example.com", false)})
	if n := before - count(published); n != 1 {
		t.Errorf("%d metrics went", n)
	}
	if !slices.Equal(forgotten, []string{"b.example.com"}) {
		t.Errorf("migrations of %v are forgotten", forgotten)
	}
	p.forget(nil)
	if n := before - count(published); n != 3 || !slices.Equal(forgotten[1:], []string{"a.example.com"}) {
		t.Errorf("%d metrics went, migrations of %v are forgotten", n, forgotten)
	}
}

// count is how many metrics there are.
func count(of prometheus.Collector) int {
	metrics := make(chan prometheus.Metric, 100)
	of.Collect(metrics)
	return len(metrics)
}
