package engine_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/engine"
	"github.com/corollary-dev/corollary/pkg/rollout"
)

// rolledOut gives a config a rollout that moves 1, 3 and all 6 Widgets, a minute apart.
func rolledOut(conf, name, more string) string {
	conf = strings.Replace(conf, "  pause:", "  rollout: {annotation: "+name+".example.com/rollout}\n  pause:", 1)
	return conf + "rollout: {steps: [1, 50%, 100%], pause: 1m, progressDeadline: 5m" + more + "}\n"
}

// inVersion is a config whose ConfigMaps have that version besides their data.
func inVersion(conf, of string) string {
	return strings.Replace(conf, "data: {{ .spec.data }}", "data: {{ set .spec.data \"version\" \""+of+"\" }}", 1)
}

// at are the names of those of whose ConfigMaps have a version.
func at(t *testing.T, ns, of string) (names string) {
	t.Helper()
	eachGuarded(func(up string) {
		if cm := testkit.Find(t, configMaps, ns, up); cm != nil && dataIn(cm, "version") == of {
			names += strings.TrimPrefix(up, "w-00")
		}
	})
	return names
}

// after lets time pass, and then holds the Widgets that have a version to those that should.
func after(t *testing.T, d time.Duration, ns, of, names string) {
	t.Helper()
	<-time.After(d)
	must.Same(t, names, at(t, ns, of), "after", d, "these have version", of)
}

// runRollout runs version one of a config on six Widgets.
func runRollout(t *testing.T, ns, conf string) *running {
	t.Helper()
	r := start(t, testkit.Config(t), inVersion(conf, "one")).ready()
	eachGuarded(func(up string) { testkit.Apply(t, ns, widget(up, `{data: {key: value}}`)) })
	eachGuarded(func(up string) { waitData(t, ns, up, "version", "one") })
	return r
}

// decided is where a person decides.
const decided = ", control: {namespace: NS, configMap: confirmations, key: rollout}"

// onRollout has version one of a config work, whose rollout has more keys, for t.Run.
func onRollout(more string, test func(t *testing.T, ns, name, conf string, r *running)) func(*testing.T) {
	return spaced(func(t *testing.T, ns, name string) {
		conf := rolledOut(fill(widgetConfig, ns, name), name, fill(more, ns, name))
		test(t, ns, name, conf, runRollout(t, ns, conf))
	})
}

// inRollout is onRollout for a whole test.
func inRollout(t *testing.T, more string, test func(t *testing.T, ns, name, conf string, r *running)) {
	t.Helper()
	onRollout(more, test)(t)
}

// A changed config reaches one upstream, then some, then all, with as many requests as without a rollout. Those that wait
// are looked after by the config before; what is new or edited gets the changed one.
func TestRollout(t *testing.T) {
	inRollout(t, "", func(t *testing.T, ns, name, conf string, r *running) {
		r.reloadTo(inVersion(conf, "two"))
		after(t, 10*time.Second, ns, "two", "0")
		waitState(t, name, "RollingOut")
		testkit.Patch(t, configMaps, ns, named(5), "somebody", `{"data":{"version":"theirs"}}`)
		after(t, 10*time.Second, ns, "one", "12345")
		testkit.Delete(t, configMaps, ns, named(4))
		after(t, 10*time.Second, ns, "one", "12345")
		testkit.Apply(t, ns, widget(named(5), `{data: {key: other}}`))
		after(t, 10*time.Second, ns, "two", "05")
		after(t, time.Minute, ns, "two", "0125")
		after(t, time.Minute, ns, "two", "012345")
		after(t, 2*time.Minute, ns, "two", "012345")
		waitState(t, name, "Running")
	})
}

// A change that fails reaches no more than the present step, whatever it fails by, also after a restart. It goes on
// once the config is good.
func TestRolloutHalts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ reason, from, to, moved, says string }{
		{"the API server refuses it", "version: one", "'no such key': x", "", "Rejected"},
		{"it renders nothing", "name: {{ .spec.name | default .metadata.name }}", `name: {{ fail "no" }}`, "", "RenderFailed"},
		{"it is never Ready", "    # downstream", "    ready: {rules: [{rule: 'false', message: never}]}\n    # downstream", "0",
			"not Ready 5m0s after"},
		{"a rule makes all invalid", "downstreams:\n  - ", "validate: [{rule: 'false', message: none}]\ndownstreams:\n  - ", "",
			"Invalid"},
		{"it fails", "    # downstream", "    ready: {failed: [{rule: 'true', message: broken}]}\n    # downstream", "0", "Failed"},
		{"a rule halts it", "pause: 1m", "pause: 1m, haltWhen: ['downstreams.config.data.version == \"two\"']", "0",
			"rollout.haltWhen[0]"},
	} {
		t.Run(test.reason, onRollout("", func(t *testing.T, ns, name, conf string, r *running) {
			bad := inVersion(strings.Replace(conf, test.from, test.to, 1), "two")
			if strings.HasPrefix(test.to, "'") {
				bad = strings.Replace(conf, "data: {{ .spec.data }}", "data: {version: two, "+test.to+"}", 1)
			}
			for i, at := range []string{"reload", "start", "start"} {
				if i == 0 && test.says == "RenderFailed" { // which guard holds
					continue
				}
				r = r.become(at, bad)
				after(t, 10*time.Minute, ns, "two", test.moved)
				waitState(t, name, "RolloutHalted")
				r.waitRollout(test.says)
			}
			r.reloadTo(inVersion(conf, "three"))
			after(t, 10*time.Minute, ns, "three", "012345")
			waitState(t, name, "Running")
		}))
	}
}

// waitRollout waits until /readyz/operators says how far the rollout is.
func (r *running) waitRollout(says string) {
	r.t.Helper()
	named := must.Get(http.NewRequest(http.MethodGet, "/readyz/operators", http.NoBody)).In(r.t)
	testkit.Eventually(r.t, patience, func() (bool, string) {
		message := text(r.Ready(named))
		return strings.Contains(message, says), "it says " + message
	})
}

// rolloutName is how the config that is rolled out is called.
func (r *running) rolloutName() string {
	r.t.Helper()
	files, errs := load.Operators(load.Options{Files: []string{r.dir}})
	if len(errs) > 0 {
		r.t.Fatal(errs)
	}
	return rollout.ConfigName(files[0].Digest())
}

// A process that is stopped in the middle goes on from the objects: nothing is stored elsewhere. What it has yet to reach
// is left alone, and says so.
func TestRolloutAfterRestart(t *testing.T) {
	inRollout(t, "", func(t *testing.T, ns, name, conf string, r *running) {
		for range 3 { // a start rests first
			r = r.become("start", inVersion(conf, "two"))
			after(t, 30*time.Second, ns, "two", "")
		}
		after(t, 40*time.Second, ns, "two", "0")
		waitThat(t, widgets, ns, named(4), func(u *obj) bool {
			status, _, message := condition(u, "Ready")
			return status == "True" && strings.Contains(message, "held: Rollout")
		})
		testkit.Patch(t, configMaps, ns, named(4), "somebody", `{"data":{"version":"theirs"}}`)
		after(t, 20*time.Second, ns, "theirs", "4")
		after(t, 50*time.Second, ns, "two", "012")
		r.become("start", inVersion(conf, "two"))
		after(t, 50*time.Second, ns, "two", "012")
		after(t, 20*time.Second, ns, "two", "012345")
		waitState(t, name, "Running")
		waitThat(t, widgets, ns, named(4), func(u *obj) bool {
			_, _, message := condition(u, "Ready")
			return message == ""
		})
	})
}

// Another change during a rollout is the new target. What the first one has not reached stays with the config that reached
// all.
func TestRolloutDuringARollout(t *testing.T) {
	inRollout(t, "", func(t *testing.T, ns, name, conf string, r *running) {
		r.reloadTo(inVersion(conf, "two"))
		after(t, 90*time.Second, ns, "two", "012")
		r.reloadTo(inVersion(conf, "three"))
		after(t, 10*time.Second, ns, "three", "0")
		must.Same(t, "12", at(t, ns, "two"))
		testkit.Delete(t, configMaps, ns, named(4))
		after(t, 10*time.Second, ns, "one", "345")
		r.reloadTo(inVersion(conf, "one"))
		after(t, 5*time.Minute, ns, "one", "012345")
		waitState(t, name, "Running")
	})
}

// A rollout that halts gives back what it has moved, if the config wants that.
func TestRolloutReverts(t *testing.T) {
	inRollout(t, ", onHalt: Revert", func(t *testing.T, ns, name, conf string, r *running) {
		r.reloadTo(inVersion(conf, "two"))
		after(t, 90*time.Second, ns, "two", "012")
		testkit.Patch(t, configMaps, ns, named(3), "somebody", `{"data":{"key":"theirs"}}`)
		bad := strings.Replace(conf, "    # downstream", "    ready: {failed: [{rule: 'self.metadata.name == \"w-002\"', message: broken}]}\n    # downstream", 1)
		r.reloadTo(inVersion(conf, "one"))
		after(t, 5*time.Minute, ns, "one", "012345")
		r.reloadTo(inVersion(bad, "two"))
		after(t, 2*time.Minute, ns, "one", "012345")
		waitState(t, name, "RolloutHalted")
		r.waitRollout("w-002 (Failed)")
	})
}

// What a person decides: to pause, to go on, to go on whatever has failed.
func TestRolloutControl(t *testing.T) {
	inRollout(t, decided, func(t *testing.T, ns, name, conf string, r *running) {
		bad := strings.Replace(inVersion(conf, "two"), "    # downstream", "    ready: {failed: [{rule: 'true', message: broken}]}\n    # downstream", 1)
		r.reloadTo(bad)
		after(t, 5*time.Minute, ns, "two", "0")
		config := r.rolloutName()
		confirmWith(t, ns, "rollout", config+" promote 9999999999 2")
		after(t, 5*time.Minute, ns, "two", "012")
		confirmWith(t, ns, "rollout", "000000000000 promote 9999999999 3")
		after(t, 5*time.Minute, ns, "two", "012")
		confirmWith(t, ns, "rollout", config+" revert 0")
		after(t, 5*time.Minute, ns, "one", "012345")
		confirmWith(t, ns, "rollout", config+" promote 9999999999 3")
		after(t, 5*time.Minute, ns, "two", "012345")
	})
}

// A process that is killed before or after any of the writes of a rollout moves no more than the present step, and the next
// one goes on.
func TestRolloutKilledAtEachWrite(t *testing.T) {
	t.Parallel()
	for n := range 8 {
		for _, sent := range []bool{false, true} {
			t.Run(fmt.Sprintf("write %d, sent %t", n, sent), spaced(func(t *testing.T, ns, name string) {
				conf := rolledOut(fill(widgetConfig, ns, name), name, "")
				runRollout(t, ns, conf).halt()
				writes, killed := atomic.Int32{}, atomic.Bool{}
				cfg := intercepted(testkit.Config(t), func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
					if r.Method != http.MethodGet && int(writes.Add(1)) > n && !killed.Swap(true) && sent {
						_, _ = next.RoundTrip(r)
					}
					if killed.Load() {
						return nil, errors.New("killed")
					}
					return next.RoundTrip(r)
				})
				r := start(t, cfg, inVersion(conf, "two"))
				<-time.After(3 * time.Minute)
				moved := at(t, ns, "two")
				if len(moved) > 3 || n < 2 && len(moved) > 1 {
					t.Errorf("%s are moved at write %d", moved, n)
				}
				r.become("start", inVersion(conf, "two"))
				after(t, 10*time.Minute, ns, "two", "012345")
				waitState(t, name, "Running")
			}))
		}
	}
}

// What an attack has found: a standby never acts by the config that its leader has left behind, a mark alone moves nothing, an
// unrelated edit of the config does not forgive what has failed, a reverted rollout stays so for what is edited, and a
// promotion counts for one rollout only.
func TestRolloutAttacks(t *testing.T) {
	t.Parallel()
	failing := func(conf string) string {
		return inVersion(strings.Replace(conf, "    # downstream", "    ready: {failed: [{rule: 'true', message: broken}]}\n    # downstream", 1), "two")
	}
	t.Run("standby", onRollout("", func(t *testing.T, ns, name, conf string, r *running) {
		elected := make(chan struct{})
		writes := atomic.Int32{}
		cfg := intercepted(testkit.Config(t), func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			if r.Method != http.MethodGet {
				writes.Add(1)
			}
			return next.RoundTrip(r)
		})
		standby := startWith(t, cfg, func(_ *config.Operator, o *engine.Options) { o.Elected = elected }, inVersion(conf, "one"))
		standby.reloadTo(inVersion(conf, "two"))
		r.reloadTo(inVersion(conf, "two"))
		after(t, 5*time.Minute, ns, "two", "012345")
		r.halt()
		must.Same(t, int32(0), writes.Load())
		close(elected)
		after(t, 5*time.Minute, ns, "two", "012345")
		must.Same(t, int32(0), writes.Load(), "writes of what was a standby")
	}))
	t.Run("mark", onRollout("", func(t *testing.T, ns, name, conf string, r *running) {
		r.reloadTo(failing(conf))
		after(t, 10*time.Second, ns, "two", "0")
		mark := testkit.Find(t, configMaps, ns, named(0)).GetAnnotations()[name+".example.com/rollout"]
		for i := 1; i < guardedWidgets; i++ {
			testkit.Patch(t, configMaps, ns, named(i), "somebody", `{"metadata":{"annotations":{"`+name+`.example.com/rollout":"`+mark+`"}}}`)
		}
		r.become("start", failing(conf))
		after(t, 10*time.Minute, ns, "two", "0")
	}))
	t.Run("unrelated edit", onRollout("", func(t *testing.T, ns, name, conf string, r *running) {
		for _, pause := range []string{"1m", "2m", "3m"} {
			r.reloadTo(strings.Replace(failing(conf), "pause: 1m", "pause: "+pause, 1))
			after(t, 10*time.Minute, ns, "two", "0")
			waitState(t, name, "RolloutHalted")
		}
	}))
	t.Run("edited after a revert", onRollout(", onHalt: Revert", func(t *testing.T, ns, name, conf string, r *running) {
		r.reloadTo(failing(conf))
		after(t, 2*time.Minute, ns, "one", "012345")
		testkit.Apply(t, ns, widget(named(3), `{data: {key: edited}}`))
		waitData(t, ns, named(3), "key", "edited")
		after(t, time.Minute, ns, "one", "012345")
		testkit.Apply(t, ns, widget("new", `{data: {key: value}}`))
		waitData(t, ns, "new", "version", "one")
	}))
	t.Run("old promotion", onRollout(decided, func(t *testing.T, ns, name, conf string, r *running) {
		r.reloadTo(failing(conf))
		after(t, time.Minute, ns, "two", "0")
		confirmWith(t, ns, "rollout", fmt.Sprintf("%s promote %d 9", r.rolloutName(), time.Now().Unix()))
		after(t, time.Minute, ns, "two", "012345")
		r.reloadTo(inVersion(conf, "one"))
		after(t, 10*time.Minute, ns, "one", "012345")
		r.reloadTo(failing(conf))
		after(t, 10*time.Minute, ns, "two", "0")
	}))
	t.Run("paused", onRollout("", func(t *testing.T, ns, name, conf string, r *running) {
		pause := func(value string) {
			for i := 1; i < guardedWidgets; i++ {
				testkit.Patch(t, widgets, ns, named(i), "somebody", `{"metadata":{"annotations":{"`+name+`.example.com/paused":`+value+`}}}`)
			}
		}
		pause(`"true"`)
		r.reloadTo(failing(conf))
		after(t, 10*time.Minute, ns, "two", "0")
		pause("null")
		after(t, 10*time.Minute, ns, "two", "0")
	}))
}

// What a review has found: each upstream has one config at a time, whatever session ends; a decision holds over a restart;
// what no step has moved counts for none.
func TestRolloutSessions(t *testing.T) {
	t.Parallel()
	t.Run("the current one starts over", onRollout("", func(t *testing.T, ns, name, conf string, r *running) {
		r.reloadTo(inVersion(conf, "two"))
		after(t, 10*time.Second, ns, "two", "0")
		r.EndSessions()
		after(t, 30*time.Second, ns, "two", "0")
		before := testkit.Find(t, configMaps, ns, named(5)).GetResourceVersion()
		after(t, 20*time.Second, ns, "two", "0")
		must.Same(t, before, testkit.Find(t, configMaps, ns, named(5)).GetResourceVersion())
		after(t, 5*time.Minute, ns, "two", "012345")
	}))
	t.Run("the one before waits for guard", spaced(func(t *testing.T, ns, name string) {
		conf := rolledOut(fill(widgetConfig, ns, name)+"guard: {maxChanged: 10%, minimum: 0}\n", name, "")
		r := runRollout(t, ns, conf)
		eachGuarded(func(up string) { testkit.Patch(t, configMaps, ns, up, "somebody", `{"data":{"version":"theirs"}}`) })
		r.EndSessions()
		eachGuarded(func(up string) { testkit.Patch(t, configMaps, ns, up, "somebody", `{"data":{"version":"theirs"}}`) })
		<-time.After(10 * time.Second)
		r.reloadTo(inVersion(strings.Replace(conf, "maxChanged: 10%", "maxChanged: 100%", 1), "two"))
		after(t, 10*time.Minute, ns, "two", "012345")
	}))
	t.Run("reverted, and started again", onRollout(decided, func(t *testing.T, ns, name, conf string, r *running) {
		r.reloadTo(inVersion(conf, "two"))
		after(t, 80*time.Second, ns, "two", "012")
		confirmWith(t, ns, "rollout", r.rolloutName()+" revert 0")
		after(t, 30*time.Second, ns, "one", "012345")
		metricIs(t, guardedWidgets, "corollary_upstreams", name)
		r = r.become("start", inVersion(conf, "two"))
		after(t, 5*time.Minute, ns, "one", "012345")
		confirmWith(t, ns, "rollout", r.rolloutName()+" promote 0 0") // what resume writes
		after(t, 5*time.Minute, ns, "two", "012345")
		metricIs(t, guardedWidgets, "corollary_upstreams", name)
	}))
	t.Run("paused while it waits", onRollout("", func(t *testing.T, ns, name, conf string, r *running) {
		r.reloadTo(inVersion(conf, "two"))
		after(t, 10*time.Second, ns, "two", "0")
		testkit.Patch(t, widgets, ns, named(2), "somebody", `{"metadata":{"annotations":{"`+name+`.example.com/paused":"true"}}}`)
		after(t, 5*time.Minute, ns, "two", "01345")
		waitState(t, name, "Running")
		metricIs(t, guardedWidgets, "corollary_upstreams", name)
	}))
	t.Run("new ones, and a restart", spaced(func(t *testing.T, ns, name string) {
		conf := strings.Replace(rolledOut(fill(widgetConfig, ns, name), name, ""), "steps: [1, 50%, 100%]", "steps: [1, 2, 3, 100%]", 1)
		r := runRollout(t, ns, conf)
		r.reloadTo(inVersion(conf, "two"))
		after(t, 10*time.Second, ns, "two", "0")
		for _, up := range []string{"n-1", "n-2", "n-3", "n-4", "n-5"} {
			testkit.Apply(t, ns, widget(up, `{data: {key: value}}`))
			waitData(t, ns, up, "version", "two")
		}
		r.become("start", inVersion(conf, "two"))
		after(t, 50*time.Second, ns, "two", "0")
		after(t, 30*time.Second, ns, "two", "01")
	}))
}
