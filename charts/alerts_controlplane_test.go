//go:build controlplane

package charts

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	kyaml "sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/tools"
)

// rulesOf renders the chart and returns the spec of its PrometheusRule, which is a file of rules as Prometheus reads
// it.
func rulesOf(t testing.TB, args ...string) []byte {
	t.Helper()
	manifest := render(t, append([]string{image, "--values=testdata/values/minimal.yaml", "--set=metrics.prometheusRule.enabled=true"},
		args...)...)
	for _, o := range objects(t, manifest) {
		if o.GetKind() == "PrometheusRule" {
			rules := must.Get(kyaml.Marshal(o.Object["spec"])).In(t)
			return rules
		}
	}
	t.Fatal("no PrometheusRule is rendered")
	return nil
}

// promtool runs promtool, which is the real one, in a directory and returns what it prints.
func promtool(t testing.TB, dir string, args ...string) (output string, err error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), tools.Path(t, "promtool"), args...)
	command.Dir = dir
	out, err := command.CombinedOutput()
	return string(out), err
}

// TestAlertsAreRules: Prometheus takes the rules as they are rendered, with each of the values that change them.
func TestAlertsAreRules(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		reason    string
		args      []string
		has, lack string
	}{
		{"as they come", nil, `job="test-corollary-metrics", namespace="apps"`, "$("},
		{"another Prometheus", []string{`--set=metrics.prometheusRule.selector=app="corollary"`, "--set=metrics.prometheusRule.by={cluster,app}"},
			`by (cluster, app`, "test-corollary-metrics"},
		{"no runbook", []string{"--set=metrics.prometheusRule.runbookURL="}, "CorollaryDown", "runbook_url"},
		{"one alert less", []string{"--set=metrics.prometheusRule.disabled={CorollaryDown}"}, "CorollaryNobodyLeads", "CorollaryDown"},
		{"a threshold of nothing", []string{"--set=metrics.prometheusRule.alerts.CorollaryDriftStorm.threshold=0"}, "* 60 > 0", "* 60 > 10"},
		{"less urgent", []string{"--set=metrics.prometheusRule.alerts.CorollaryDown.severity=page",
			"--set=metrics.prometheusRule.alerts.CorollaryDown.for=1h"}, "severity: page", "for: 5m0s"},
		{"labels of one's own", []string{"--set=metrics.prometheusRule.additionalLabels.team=platform"}, "team: platform", ""},
		{"rules of one's own", []string{"--set=metrics.prometheusRule.rules[0].record=a:b",
			"--set=metrics.prometheusRule.rules[0].expr=vector(1)"}, "record: a:b", ""},
	} {
		t.Run(row.reason, func(t *testing.T) {
			rules := string(rulesOf(t, row.args...))
			if !strings.Contains(rules, row.has) || row.lack != "" && strings.Contains(rules, row.lack) {
				t.Errorf("it should have %q and not %q:\n%s", row.has, row.lack, rules)
			}
			path := write(t, "rules.yaml", rules)
			if out, err := promtool(t, filepath.Dir(path), "check", "rules", "--lint=all", "--lint-fatal", path); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// ruleTest is what is looked at in a file of testdata/alerts, which is in promtool's own form.
type ruleTest struct {
	RuleFiles          []string `json:"rule_files"`
	EvaluationInterval string   `json:"evaluation_interval"`
	Tests              []struct {
		Name          string
		Interval      string
		InputSeries   []struct{ Series, Values string } `json:"input_series"`
		AlertRuleTest []struct {
			AlertName string `json:"alertname"`
			EvalTime  string `json:"eval_time"`
			ExpAlerts []struct {
				Labels      map[string]string `json:"exp_labels"`
				Annotations map[string]string `json:"exp_annotations"`
			} `json:"exp_alerts"`
		} `json:"alert_rule_test"`
		ExprTest []struct {
			Expr     string
			EvalTime string `json:"eval_time"`
			Samples  []any  `json:"exp_samples"`
		} `json:"promql_expr_test"`
	}
}

// TestAlertsFire gives each alert a history in which it fires, with the text that someone on call reads, and one in
// which it never does.
func TestAlertsFire(t *testing.T) {
	t.Parallel()
	rules := rulesOf(t)
	for _, a := range alerts(t) {
		t.Run(a.Alert, func(t *testing.T) {
			t.Parallel()
			cases := must.Get(os.ReadFile("testdata/alerts/" + a.Alert + ".yaml")).In(t)
			var file ruleTest
			must.Do(t, kyaml.UnmarshalStrict(cases, &file))
			checkCases(t, a.Alert, file)
			dir := t.TempDir()
			for name, content := range map[string][]byte{"rules.yaml": rules, "test.yaml": cases} {
				must.Do(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
			}
			if out, err := promtool(t, dir, "test", "rules", "test.yaml"); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// checkCases fails the test unless one case has the alert fire and tell what it says, one has it never fire, and each
// checks what its name says.
func checkCases(t *testing.T, alert string, file ruleTest) {
	t.Helper()
	fires, silent := 0, 0
	never := `max_over_time(ALERTS{alertname="` + alert + `", alertstate="firing"}[2h])`
	for _, test := range file.Tests {
		switch kind, _, _ := strings.Cut(test.Name, ": "); {
		case kind == "firing" && len(test.AlertRuleTest) == 1 && test.AlertRuleTest[0].AlertName == alert &&
			len(test.AlertRuleTest[0].ExpAlerts) > 0:
			fires++
		case kind == "firing" && len(test.ExprTest) == 1 && len(test.ExprTest[0].Samples) > 0:
		case kind == "silent" && len(test.ExprTest) == 1 && test.ExprTest[0].Expr == never && len(test.ExprTest[0].Samples) == 0:
			silent++
		default:
			t.Errorf("the case %q does not check what it says", test.Name)
		}
	}
	if fires == 0 || silent == 0 {
		t.Errorf("%d cases have it fire, and %d have it silent", fires, silent)
	}
}
