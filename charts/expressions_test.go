package charts

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	_ "github.com/corollary-dev/corollary/pkg/cli" // registers what the command exports
)

var description = regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)

// exported returns the labels of every metric that the command can export, by name: what is registered, whether or not
// anything was counted yet.
func exported(t testing.TB) map[string][]string {
	t.Helper()
	registry, ok := metrics.Registry.(prometheus.Collector)
	if !ok {
		t.Fatalf("a %T does not tell what is registered", metrics.Registry)
	}
	found := make(chan *prometheus.Desc)
	go func() {
		defer close(found)
		registry.Describe(found)
	}()
	all := map[string][]string{"up": nil} // Prometheus' own
	for d := range found {
		m := description.FindStringSubmatch(d.String())
		if m == nil {
			t.Errorf("%s cannot be read", d)
			continue
		}
		labels := strings.Split(m[2], ",")
		all[m[1]] = labels
		for _, suffix := range []string{"_bucket", "_sum", "_count"} { // of histograms; nothing says which are some
			all[m[1]+suffix] = append(slices.Clip(labels), "le")
		}
	}
	return all
}

var (
	selected = regexp.MustCompile(`([a-z_:][a-zA-Z0-9_:]*)\{([^}]*)\}`)
	matcher  = regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_]*)(?:=~|!~|!=|=)"`)
	grouped  = regexp.MustCompile(`(?:by|on|ignoring|group_left) ?\(([^)]*)\)`)
	// targets are the labels that scraping gives to every metric.
	targets = []string{"namespace", "job", "instance", "pod"}
)

// checkExpression fails the test where an expression names a metric or a label that the command does not export.
func checkExpression(t *testing.T, metrics map[string][]string, where, expr string) {
	t.Helper()
	known := slices.Clone(targets)
	found := selected.FindAllStringSubmatch(expr, -1)
	if len(found) == 0 {
		t.Errorf("%s selects nothing: %s", where, expr)
	}
	for _, m := range found {
		labels, ok := metrics[m[1]]
		if !ok {
			t.Errorf("%s asks for %s, which nothing exports", where, m[1])
		}
		known = append(known, labels...)
		for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(labels, l[1]) && !slices.Contains(targets, l[1]) {
				t.Errorf("%s asks for the label %s of %s, which has %v", where, l[1], m[1], labels)
			}
		}
	}
	for _, m := range grouped.FindAllStringSubmatch(expr, -1) {
		for label := range strings.SplitSeq(m[1], ",") {
			if label = strings.TrimSpace(label); label != "" && !slices.Contains(known, label) {
				t.Errorf("%s groups by %s, which none of its metrics has: %s", where, label, expr)
			}
		}
	}
}

// TestExpressionsNameWhatIsExported: an alert on a metric that nobody exports is silent forever.
func TestExpressionsNameWhatIsExported(t *testing.T) {
	metrics := exported(t)
	if labels := metrics["corollary_upstreams"]; !slices.Equal(labels, []string{"operator", "ready", "reason"}) {
		t.Fatalf("corollary_upstreams is read with the labels %v", labels)
	}
	places := strings.NewReplacer("$(process)", `job="a", namespace="b"`, "$(by)", "namespace, job", "$(threshold)", "1")
	for _, a := range alerts(t) {
		checkExpression(t, metrics, a.Alert, places.Replace(a.Expr))
	}
}
