package engine_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/engine"
)

// slowed makes some requests take longer.
func slowed(cfg *rest.Config, by time.Duration, isSlow func(*http.Request) bool) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return heldTransport(func(request *http.Request) (*http.Response, error) {
			if isSlow(request) {
				<-time.After(by)
			}
			return next.RoundTrip(request)
		})
	})
	return cfg
}

func isWrite(request *http.Request) bool { return request.Method != http.MethodGet }

// TestOverload: while custom resources change faster than they are reconciled, others are not left behind: neither one that an input
// concerns, nor one that a start finds.
func TestOverload(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"input", "start"} {
		t.Run(how, bubbled(func(t *testing.T) {
			const changing = 30
			ns, name := testkit.Namespace(t), testkit.Unique(t)
			conf := strings.Replace(fill(widgetConfig, ns, name), "data: {{ .spec.data }}",
				`data: {key: {{ .spec.data.key }}, setting: {{ (input "settings").data.setting }}}`, 1) +
				"inputs: [{name: settings, apiVersion: v1, kind: ConfigMap, fixedName: settings}]\n"
			set := func(setting string) {
				testkit.Apply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {setting: "+setting+"}}")
			}
			set("one")
			testkit.Apply(t, ns, widget("still", "{data: {key: one}}"))
			for i := range changing {
				testkit.Apply(t, ns, widget(named(i), "{data: {key: one}}"))
			}
			// Each takes about 0.4 s, and a change comes every 50 ms.
			start := func() *running {
				return startWith(t, slowed(testkit.Config(t), 200*time.Millisecond, isWrite), func(_ *config.Operator, o *engine.Options) { o.Workers = 1 }, conf)
			}
			r := start()
			waitData(t, ns, "still", "setting", "one")
			if how == "start" {
				r.halt()
			}
			ended, done := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(done)
				for i := 0; ; i++ {
					select {
					case <-ended:
						return
					case <-time.After(50 * time.Millisecond):
					}
					testkit.Patch(t, widgets, ns, named(i%changing), "load", fmt.Sprintf(`{"spec":{"data":{"key":"v%d"}}}`, i))
				}
			}()
			defer func() { close(ended); <-done }()
			set("two")
			if how == "start" {
				start()
			}
			waitData(t, ns, "still", "setting", "two")
		}))
	}
}
