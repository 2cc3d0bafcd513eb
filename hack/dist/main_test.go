package main

import (
	"strings"
	"testing"
)

func TestWhatDistRefuses(t *testing.T) {
	for _, test := range []struct {
		version, date string
		wants         string
	}{
		{"0123abc-dirty", "2001-02-03T04:05:06Z", "make dist VERSION=v1.2.3"},
		{"1.2.3", "2001-02-03T04:05:06Z", "make dist VERSION=v1.2.3"},
		{"v1.2", "2001-02-03T04:05:06Z", "make dist VERSION=v1.2.3"},
		{"v1.2.3", "unknown", "inside a git clone"},
	} {
		err := command(t.Context(), []string{"-version", test.version, "-date", test.date})
		if err == nil || !strings.Contains(err.Error(), test.wants) {
			t.Errorf("version %s of %s: got %v, want %q", test.version, test.date, err, test.wants)
		}
	}
}

func TestCutTag(t *testing.T) {
	for image, want := range map[string]string{
		"corollary:1.2.3":                     "corollary 1.2.3",
		"registry.example.com:5000/c:1.2.3":   "registry.example.com:5000/c 1.2.3",
		"registry.example.com:5000/corollary": "",
		"corollary":                           "",
		"corollary:":                          "",
	} {
		repository, tag, ok := cutTag(image)
		if got := strings.TrimSpace(repository + " " + tag); got != want || ok != (want != "") {
			t.Errorf("%s: got %q, %t", image, got, ok)
		}
	}
}
