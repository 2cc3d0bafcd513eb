package sim_test

import (
	"reflect"
	"slices"
	"testing"
)

// tries limits the schedules that are run to find a smaller one.
const tries = 400

// shrink returns the smallest schedule found that still fails, and its result.
func shrink(t *testing.T, s Schedule, r result) (Schedule, result) {
	left := tries
	fails := func(candidate Schedule) bool {
		if left == 0 {
			return false
		}
		left--
		again := simulate(t, candidate)
		if len(again.problems) == 0 {
			return false
		}
		s, r = candidate, again
		return true
	}
	explicit := s
	explicit.Faults = &r.faults
	fails(explicit)
	for before := -1; before != left; {
		before = left
		prompt := s
		prompt.Prompt = true
		if !s.Prompt {
			fails(prompt)
		}
		drop(len(s.Steps), func(from, to int) bool {
			candidate := s
			candidate.Steps = slices.Delete(slices.Clone(s.Steps), from, to)
			return fails(candidate)
		})
		if s.Faults != nil {
			drop(len(*s.Faults), func(from, to int) bool {
				candidate := s
				rest := slices.Delete(slices.Clone(*s.Faults), from, to)
				candidate.Faults = &rest
				return fails(candidate)
			})
		}
		if !simplify(&s, fails) {
			break
		}
	}
	return s, r
}

// drop removes as many of n things as it can: halves first, then smaller parts.
func drop(n int, without func(from, to int) bool) {
	for size := max(n/2, 1); size > 0 && n > 0; size /= 2 {
		for to := n; to > 0; {
			from := max(to-size, 0)
			if without(from, to) {
				n -= to - from
			}
			to = from
		}
	}
}

// simplify removes special features of the setup. It returns whether it removed any.
func simplify(s *Schedule, fails func(Schedule) bool) (simpler bool) {
	for i := range reflect.TypeFor[Setup]().NumField() {
		candidate := *s
		field := reflect.ValueOf(&candidate.Setup).Elem().Field(i)
		if reflect.TypeFor[Setup]().Field(i).Name == "Example" || field.IsZero() {
			continue
		}
		field.SetZero()
		simpler = fails(candidate) || simpler
	}
	return simpler
}
