package offline

import (
	"encoding/xml"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/corollary-dev/corollary/pkg/cases"
	"github.com/corollary-dev/corollary/pkg/cli/command"
)

// JUnit's format as build servers read it: a suite for each folder.
type (
	junitReport struct {
		XMLName  xml.Name      `xml:"testsuites"`
		Tests    int           `xml:"tests,attr"`
		Failures int           `xml:"failures,attr"`
		Errors   int           `xml:"errors,attr"`
		Time     string        `xml:"time,attr"`
		Suites   []*junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
		took     time.Duration
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		File    string        `xml:"file,attr"`
		Time    string        `xml:"time,attr"`
		Failure *junitProblem `xml:"failure"`
		Error   *junitProblem `xml:"error"`
	}
	junitProblem struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",cdata"`
	}
)

// writeJUnit writes a report. A case that could not be run is an error in it, one that came out differently a failure.
func writeJUnit(file string, verdicts []*cases.Verdict) error {
	text, err := xml.MarshalIndent(junitOf(verdicts), "", "  ")
	if err == nil {
		err = os.WriteFile(file, append([]byte(xml.Header), append(text, '\n')...), 0o644)
	}
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

func junitOf(verdicts []*cases.Verdict) *junitReport {
	report := &junitReport{}
	var took time.Duration
	for _, v := range verdicts {
		dir, name := path.Split(v.Name)
		dir = strings.TrimSuffix(dir, "/")
		if dir == "" {
			dir = "."
		}
		i := slices.IndexFunc(report.Suites, func(s *junitSuite) bool { return s.Name == dir })
		if i < 0 {
			i = len(report.Suites)
			report.Suites = append(report.Suites, &junitSuite{Name: dir})
		}
		s := report.Suites[i]
		c := junitCase{Name: name, Class: dir, File: v.Path, Time: seconds(v.Took)}
		switch problem := problemOf(v); {
		case len(v.Errs) > 0:
			c.Error = problem
			s.Errors, report.Errors = s.Errors+1, report.Errors+1
		case v.Failed():
			c.Failure = problem
			s.Failures, report.Failures = s.Failures+1, report.Failures+1
		}
		s.Cases, s.Tests, report.Tests = append(s.Cases, c), s.Tests+1, report.Tests+1
		s.took, took = s.took+v.Took, took+v.Took
	}
	for _, s := range report.Suites {
		s.Time = seconds(s.took)
	}
	report.Time = seconds(took)
	return report
}

func problemOf(v *cases.Verdict) *junitProblem {
	text := details(v, command.Painter{})
	first, _, _ := strings.Cut(text, "\n")
	return &junitProblem{Message: first, Text: strings.Map(inXML, text)}
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }

// inXML drops what XML cannot hold, in whatever spelling.
func inXML(r rune) rune {
	if r == '\t' || r == '\n' || r == '\r' || r >= 0x20 && r <= 0xd7ff || r >= 0xe000 && r <= 0xfffd || r >= 0x10000 {
		return r
	}
	return -1
}
