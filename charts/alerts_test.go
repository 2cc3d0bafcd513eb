package charts

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	kyaml "sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/must"
)

// alert is an entry of files/alerts.yaml.
type alert struct {
	Alert, Severity, For, Expr, Summary, Description string

	Threshold *float64
}

// alerts returns what the chart has, in its order.
func alerts(t testing.TB) []alert {
	t.Helper()
	var file struct{ Alerts []alert }
	must.Do(t, kyaml.UnmarshalStrict([]byte(text(t, "corollary/files/alerts.yaml")), &file))
	if len(file.Alerts) < 10 {
		t.Fatalf("there are %d alerts only", len(file.Alerts))
	}
	return file.Alerts
}

func text(t testing.TB, path string) string {
	t.Helper()
	data := must.Get(os.ReadFile(path)).In(t)
	return string(data)
}

// TestAlertsAreDocumented: docs/metrics.md lists each alert with its severity and how long it waits, in the same order,
// and the chart's schema knows its name.
func TestAlertsAreDocumented(t *testing.T) {
	var want, names []string
	for _, a := range alerts(t) {
		after := a.For
		if after == "0m" {
			after = "at once"
		}
		want, names = append(want, "| `"+a.Alert+"` | "+a.Severity+" | "+after+" |"), append(names, a.Alert)
	}
	rows := regexp.MustCompile("(?m)^\\| `Corollary[A-Za-z]+` \\| [a-z]+ \\| [a-z0-9 ]+ \\|").FindAllString(text(t, "../docs/metrics.md"), -1)
	if !slices.Equal(rows, want) {
		t.Errorf("docs/metrics.md lists\n%s\nand the chart has\n%s", strings.Join(rows, "\n"), strings.Join(want, "\n"))
	}
	base := readJSON(t, "schema/base.json")
	var known []string
	for _, name := range object(t, object(t, base, "definitions"), "AlertName")["enum"].([]any) {
		known = append(known, name.(string))
	}
	changes, _ := find(t, base, "metrics.prometheusRule.alerts")
	for name := range object(t, changes, "properties") {
		if !slices.Contains(names, name) {
			t.Errorf("schema/base.json allows changes of %s, which the chart does not have", name)
		}
	}
	if n := len(object(t, changes, "properties")); n != len(names) {
		t.Errorf("schema/base.json allows changes of %d alerts, the chart has %d", n, len(names))
	}
	if !slices.Equal(known, names) {
		t.Errorf("schema/base.json allows the names %v, the chart has %v", known, names)
	}
}

// TestAlertsSayWhatToDo: an alert says how severe it is, what it is about, and which commands to run.
func TestAlertsSayWhatToDo(t *testing.T) {
	for _, a := range alerts(t) {
		if !slices.Contains([]string{"critical", "warning", "info"}, a.Severity) {
			t.Errorf("%s has the severity %q", a.Alert, a.Severity)
		}
		if !strings.Contains(a.Expr, "$(process)") || !strings.Contains(a.Expr, "$(by)") {
			t.Errorf("%s speaks of other releases too: %s", a.Alert, a.Expr)
		}
		if named := strings.Contains(a.Expr, "operator)") || strings.Contains(a.Expr, "operator,"); named &&
			!strings.Contains(a.Summary, "$labels.operator") {
			t.Errorf("%s does not say which operator it is about: %s", a.Alert, a.Summary)
		}
		if (a.Threshold != nil) != strings.Contains(a.Expr, "$(threshold)") {
			t.Errorf("%s: its threshold and its expression do not go together: %s", a.Alert, a.Expr)
		}
	}
}

var (
	reasonsIn = regexp.MustCompile(`(?:reason|state|result)(?:=|=~|!~|!=)"([^"]+)"`)
	inCode    = regexp.MustCompile("`(\\w+)`")
	firstCell = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")
)

// TestAlertsKnowTheWords: a reason that is misspelt in an expression matches nothing, and nobody would notice.
func TestAlertsKnowTheWords(t *testing.T) {
	documented := map[string]bool{}
	for _, m := range inCode.FindAllStringSubmatch(text(t, "../docs/metrics.md"), -1) {
		documented[m[1]] = true
	}
	for _, m := range firstCell.FindAllStringSubmatch(text(t, "../docs/conditions.md"), -1) {
		documented[m[1]] = true
	}
	for _, a := range alerts(t) {
		for _, m := range reasonsIn.FindAllStringSubmatch(a.Expr, -1) {
			for word := range strings.SplitSeq(m[1], "|") {
				if !documented[word] {
					t.Errorf("%s asks for %s, which neither docs/conditions.md nor docs/metrics.md has", a.Alert, word)
				}
			}
		}
	}
}

var grepped = regexp.MustCompile(`grep (?:-i )?'([^'"]+)'`)

// TestAlertsFindWhatIsLogged: an alert says to search the log for a text, which must be one that the program logs.
func TestAlertsFindWhatIsLogged(t *testing.T) {
	files := must.Get(filepath.Glob("../pkg/*/*.go")).In(t)
	var code strings.Builder
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			code.WriteString(text(t, file))
		}
	}
	found := 0
	for _, a := range alerts(t) {
		for _, m := range grepped.FindAllStringSubmatch(a.Description, -1) {
			found++
			if !regexp.MustCompile(`"[^"\n]*` + regexp.QuoteMeta(m[1]) + `[^"\n]*"`).MatchString(code.String()) {
				t.Errorf("%s tells to search the log for %q, which is not logged", a.Alert, m[1])
			}
		}
	}
	if found < 2 {
		t.Errorf("found %d searches in the alerts, want at least 2", found)
	}
}
