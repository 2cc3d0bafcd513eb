package sim_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"sigs.k8s.io/yaml"
)

// Schedule is a run of the simulation: the operator, the actions of users and machines, and the seed of everything
// random.
type Schedule struct {
	// Note says what a kept schedule found.
	Note  string `json:"note,omitempty"`
	Seed  uint64 `json:"seed"`
	Setup Setup  `json:"setup"`
	Steps []Step `json:"steps"`
	// Faults are faults of requests; nil means random ones.
	Faults *[]Fault `json:"faults,omitempty"`
	// Prompt makes every watch deliver at once.
	Prompt bool `json:"prompt,omitempty"`
}

// Step is one action.
type Step struct {
	// After is the time since the previous step, in milliseconds.
	After int    `json:"after"`
	Do    string `json:"do"`
	// Which and Value are numbers whose meaning depends on the action: which object, which replica, what is written.
	Which int `json:"which,omitempty"`
	Value int `json:"value,omitempty"`
}

// Fault is a fault of the Nth request with this description.
type Fault struct {
	Request string `json:"request"`
	N       uint64 `json:"n"`
	Fate    string `json:"fate"`
}

// actions are the actions of steps, repeated by their likelihood.
var actions = []string{
	"apply", "apply", "apply", "apply", "rename", "rename", "delete", "delete", "replace", "edit", "edit", "strip labels",
	"strip annotations", "strip status", "delete object", "delete object", "usurp", "usurp", "squat", "squat",
	"annotate", "kill", "kill", "stop", "compact", "cut watches",
	"hold", "hold", "orphan", "orphan", "delete namespace", "delete namespace", "input",
	"reload", "reload", "reload", "partition", "pause", "request",
}

// A step that begins something is often followed by one that interrupts it.
var (
	beginnings = []string{"apply", "rename", "delete", "replace", "reload", "strip labels", "kill"}
	attacks    = []string{"hold", "usurp", "usurp", "usurp", "strip labels", "strip labels", "delete object", "kill",
		"cut watches", "rename", "delete", "delete"}
)

// removals are steps after which it is unknown whether the operator has removed too much; half of the schedules have
// none.
var removals = []string{"delete object", "usurp"}

// scheduleOf makes the schedule of a seed.
func scheduleOf(seed uint64, setup Setup) Schedule {
	r := rand.New(rand.NewPCG(seed, 1))
	s := Schedule{Seed: seed, Setup: setup}
	for range 6 + r.IntN(14) {
		longest := []int{20, 20, 200, 200, 2000, 9000}[r.IntN(6)]
		step := Step{After: r.IntN(longest), Do: actions[r.IntN(len(actions))], Which: r.IntN(2), Value: r.IntN(12)}
		if n := len(s.Steps); n > 0 && r.IntN(3) == 0 && slices.Contains(beginnings, s.Steps[n-1].Do) {
			step = Step{After: r.IntN(150), Do: attacks[r.IntN(len(attacks))], Which: s.Steps[n-1].Which, Value: r.IntN(12)}
		}
		if seed%2 == 0 && slices.Contains(removals, step.Do) {
			step.Do = "rename"
		}
		s.Steps = append(s.Steps, step)
	}
	if setup.Example == "tiers" { // its config is what matters, and whoever takes the labels off deselects by hand
		s.Steps = append([]Step{{Do: "apply", Value: 1}, {Do: "apply", Which: 1, Value: 2}}, s.Steps...)
		for i := range s.Steps {
			switch {
			case s.Steps[i].Do == "strip labels":
				s.Steps[i].Do = "annotate"
			case i > 1 && r.IntN(3) == 0:
				s.Steps[i].Do, s.Steps[i].Value = "reload", r.IntN(4)
			}
		}
	}
	return s
}

func (s *Schedule) String() string {
	text, err := yaml.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func readSchedule(path string) (s Schedule, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return s, err
	}
	if err := yaml.UnmarshalStrict(text, &s); err != nil {
		return s, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

func milliseconds(n int) time.Duration { return time.Duration(n) * time.Millisecond }
