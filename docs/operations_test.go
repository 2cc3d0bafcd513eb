package docs_test

import (
	"regexp"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestEveryAlertHasAHeading: whoever is woken by an alert finds what to do under its name.
func TestEveryAlertHasAHeading(t *testing.T) {
	var file struct {
		Alerts []struct {
			Alert string `json:"alert"`
		} `json:"alerts"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "../charts/corollary/files/alerts.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	var headings, alerts []string
	for _, m := range regexp.MustCompile(`(?m)^### (\w+)$`).FindAllStringSubmatch(section(t, read(t, "operations.md"), "## Alerts"), -1) {
		headings = append(headings, m[1])
	}
	for _, a := range file.Alerts {
		alerts = append(alerts, a.Alert)
	}
	if len(alerts) == 0 || !slices.Equal(alerts, headings) {
		t.Errorf("the alerts are %v, the headings of operations.md %v", alerts, headings)
	}
}
