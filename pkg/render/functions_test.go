package render

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestFunctionsThatAreRefused(t *testing.T) {
	reasons := map[string][]string{
		"differ": {"now", "ago", "date", "dateInZone", "date_in_zone", "dateModify", "mustDateModify", "htmlDate", "toDate",
			"durationRound", "randAlphaNum", "randAlpha", "randNumeric", "randAscii", "randBytes", "randInt", "shuffle", "uuidv4", "genPrivateKey",
			"genCA", "genSelfSignedCert", "genSignedCert", "bcrypt", "htpasswd", "encryptAES"},
		"process":              {"env", "expandenv"},
		"network":              {"getHostByName"},
		"never":                {"tpl", "fromYaml"},
		"do not send requests": {"lookup"},
		"needs 32 MiB":         {"derivePassword"},
		"do not have it":       {"seq", "wrap", "plural", "push", "osBase", "html"},
	}
	for reason, names := range reasons {
		for _, name := range names {
			for _, text := range []string{"a: {{ " + name + " }}", "{{ if (" + name + " 1) }}{{ end }}a: 1", "a: {{ .x | " + name + " }}"} {
				_, err := Compile(text, Options{})
				if err == nil || !strings.Contains(err.Error(), "the function "+name+" is not available") || !strings.Contains(err.Error(), reason) {
					t.Errorf("%s: %v", text, err)
				}
			}
		}
	}
}

func TestUpstreamIsNeverChangedNorShared(t *testing.T) {
	tmpl := compiled(t, "{{ $d := merge .map (dict \"q\" 1) }}{{ $e := set .map \"z\" 2 }}{{ $f := append .list 1 }}a: {{ .map }}\nb:\n  "+
		"{{- toYaml .map | nindent 2 }}\nc: {{ .list }}\nd:\n  {{- toYaml .items | nindent 2 }}\ne: {{ deepCopy .items }}")
	data := rowData(t)
	before, _ := json.Marshal(data.Upstream)
	first, err := tmpl.Execute(data)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := json.Marshal(first)
	first["a"].(m)["a"] = "changed"
	first["b"].(m)["a"] = "changed"
	first["c"].(l)[0] = "changed"
	first["d"].(l)[0].(m)["n"] = "changed"
	if after, _ := json.Marshal(data.Upstream); string(before) != string(after) {
		t.Errorf("the upstream was changed: %s", after)
	}
	second, err := tmpl.Execute(data)
	if got, _ := json.Marshal(second); err != nil || string(got) != string(want) {
		t.Errorf("a result shares with the compiled template: %s, %v", got, err)
	}
}
