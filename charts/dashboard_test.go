package charts

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// dashboard is what tests look at in files/dashboard.json, Grafana's own form.
type dashboard struct {
	UID           string
	Title         string
	SchemaVersion int
	Templating    struct {
		List []struct{ Name, Type, Definition string }
	}
	Panels []panel
}

type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ X, Y, W, H int }
	Datasource               struct{ Type, UID string }
	Targets                  []struct {
		RefID, Expr string
		Datasource  struct{ UID string }
	}
}

func readDashboard(t testing.TB) dashboard {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader([]byte(text(t, "corollary/files/dashboard.json"))))
	var d dashboard
	if err := decoder.Decode(&d); err != nil {
		t.Fatal(err)
	}
	return d
}

// inPrometheus replaces what Grafana fills into an expression.
func inPrometheus(expr string) string {
	return strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h", "$namespace", ".*", "$job", ".*", "$operator", ".*").Replace(expr)
}

// expressions returns the expressions of the dashboard as Prometheus gets them, by panel and target.
func (d dashboard) expressions() map[string]string {
	all := map[string]string{}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			all[p.Title+" "+target.RefID] = inPrometheus(target.Expr)
		}
	}
	return all
}

// TestDashboardHolds: panels have different titles, say what they are about, do not overlap, and ask the data
// source that is chosen above them.
func TestDashboardHolds(t *testing.T) {
	d := readDashboard(t)
	if d.UID == "" || d.SchemaVersion < 36 {
		t.Errorf("uid %q, schemaVersion %d", d.UID, d.SchemaVersion)
	}
	var ids []int
	titles := map[string]bool{}
	taken := map[[2]int]string{}
	for _, p := range d.Panels {
		if slices.Contains(ids, p.ID) || titles[p.Title] || p.Title == "" {
			t.Errorf("panel %d, %q: its id or title is another one's too", p.ID, p.Title)
		}
		ids, titles[p.Title] = append(ids, p.ID), true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if taken[at] != "" || at[0] >= 24 {
					t.Fatalf("%q lies upon %q, or outside, at %v", p.Title, taken[at], at)
				}
				taken[at] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Description == "" || len(p.Targets) == 0 || p.Datasource.UID != "${datasource}" {
			t.Errorf("%q lacks a description, expressions or the data source", p.Title)
		}
		for _, target := range p.Targets {
			if target.Datasource.UID != "${datasource}" {
				t.Errorf("%q asks another data source", p.Title)
			}
		}
	}
}

// TestDashboardIsInThePicture: that of the documents is of this dashboard, not of one that was.
func TestDashboardIsInThePicture(t *testing.T) {
	picture := text(t, "../docs/pictures/dashboard.svg")
	for _, p := range readDashboard(t).Panels {
		if !strings.Contains(picture, ">"+p.Title+"<") && !strings.Contains(picture, ">▾ "+p.Title+"<") {
			t.Errorf("docs/pictures/dashboard.svg does not show %q: draw it anew with hack/dashboard", p.Title)
		}
	}
}

// TestDashboardAsksForWhatIsExported is TestExpressionsNameWhatIsExported for the dashboard; and its variables are
// there.
func TestDashboardAsksForWhatIsExported(t *testing.T) {
	d, metrics := readDashboard(t), exported(t)
	variables := []string{"$__rate_interval"}
	for _, v := range d.Templating.List {
		variables = append(variables, "$"+v.Name)
		if v.Type == "query" && !strings.Contains(v.Definition, "(corollary_operator_state") {
			t.Errorf("$%s lists what is not the command's: %s", v.Name, v.Definition)
		}
	}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			for _, name := range regexp.MustCompile(`\$[a-z_]+`).FindAllString(target.Expr, -1) {
				if !slices.Contains(variables, name) {
					t.Errorf("%q: there is no variable %s", p.Title, name)
				}
			}
			for _, m := range selected.FindAllStringSubmatch(target.Expr, -1) {
				if !strings.Contains(m[2], `namespace=~"$namespace", job=~"$job"`) {
					t.Errorf("%q shows what is not chosen: %s", p.Title, m[0])
				}
			}
		}
	}
	for where, expr := range d.expressions() {
		checkExpression(t, metrics, where, expr)
	}
}
