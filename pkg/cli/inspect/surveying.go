package inspect

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/spelling"
	"github.com/corollary-dev/corollary/pkg/survey"
	"github.com/corollary-dev/corollary/pkg/survey/findings"
)

// surveyFlags are those of the commands that look at a cluster through the eyes of the operators.
type surveyFlags struct {
	streams    command.IO
	configs    command.Configs
	connection command.Connection
	workers    int
	verbose    bool
}

func (f *surveyFlags) bind(cmd *cobra.Command, namespaceUsage string) {
	f.configs.Bind(cmd)
	f.connection.Bind(cmd, namespaceUsage)
	cmd.Flags().IntVar(&f.workers, "workers", 8, "Number of upstreams that are read at once")
	cmd.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "Print the progress to standard error, even if it is not a terminal")
}

// namespace is that of -n; empty if it was not given.
func (f *surveyFlags) namespace() string { return f.connection.Overrides.Context.Namespace }

// load reads the configs and holds them to the API server's schemas, as run does it.
func (f *surveyFlags) load() ([]*load.File, *rest.Config, error) {
	if f.workers < 1 {
		return nil, nil, command.Usagef("--workers is %d: at least 1 is needed", f.workers)
	}
	files, problems, err := f.configs.Load(f.streams)
	if err != nil {
		return nil, nil, err
	}
	cfg, err := f.fit(files, problems)
	return files, cfg, err
}

// fit reports every error of configs that are loaded, those that only the API server's schemas show among them.
func (f *surveyFlags) fit(files []*load.File, problems config.Errors) (*rest.Config, error) {
	cfg, err := f.connection.REST()
	if err != nil {
		return nil, command.Refuse(f.streams, problems, err)
	}
	options, err := command.LiveKinds(cfg)
	if err != nil {
		return nil, command.Refuse(f.streams, problems, err)
	}
	_, problems, err = pipeline.CompileAll(files, problems, options)
	return cfg, command.Refuse(f.streams, problems, err)
}

// surveyor prepares to look.
func (f *surveyFlags) surveyor(cfg *rest.Config, o survey.Options) (*survey.Surveyor, *progressLine, error) {
	f.streams.Silence()
	line := &progressLine{w: f.streams.Err, terminal: command.AtTerminal(f.streams.Err)}
	line.on = line.terminal || f.verbose
	o.Workers, o.Namespace, o.Progress = f.workers, f.namespace(), line.print
	o.SourceRead = line.noteSource
	s, err := survey.NewSurveyor(cfg, o)
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	return s, line, nil
}

// each opens the operators one after the other, so that no more than one's caches are in memory, and has work do with
// them.
func each(ctx context.Context, s *survey.Surveyor, files []*load.File, note func(format string, args ...any),
	work func(*survey.Survey) error) error {
	for _, file := range files {
		noteMode(file, note)
		v, err := s.Open(ctx, file)
		if err != nil {
			return err
		}
		noteEmpty(v, note)
		noteUnknown(v, note)
		err = work(v)
		v.Close()
		if err != nil {
			return fmt.Errorf("operator %s: %w", file.Metadata.Name, err)
		}
	}
	return nil
}

// noteMode says that what follows about an operator is not what run does.
func noteMode(file *load.File, note func(format string, args ...any)) {
	if file.Mode == config.ModeObserve {
		note("operator %s: mode is Observe, so run does none of this; this is what it would do with mode: Enforce", file.Metadata.Name)
	}
}

// noteRequirements says which versions configs require. Those that the API server lacks were refused before.
func noteRequirements(cfg *rest.Config, files []*load.File, note func(format string, args ...any)) error {
	if !slices.ContainsFunc(files, func(f *load.File) bool { return f.Requires != nil }) {
		return nil
	}
	options, err := command.LiveKinds(cfg)
	if err != nil {
		return err
	}
	for _, f := range files {
		list, err := pipeline.Requirements(f, options)
		if err != nil {
			return err
		}
		var texts []string
		if f.Requires != nil && f.Requires.Corollary != "" {
			texts = append(texts, "corollary "+f.Requires.Corollary)
		}
		for _, r := range list {
			texts = append(texts, r.Name+" "+r.Wanted)
		}
		if len(texts) > 0 {
			note("operator %s requires %s: all are there", f.Metadata.Name, strings.Join(texts, ", "))
		}
	}
	return nil
}

// noteEmpty says why nothing follows about an operator, and what is in doubt of what follows.
func noteEmpty(v *survey.Survey, note func(format string, args ...any)) {
	if why := v.Doubt(); why != "" {
		note("operator %s: %s: run deletes what belongs to the missing rows only after a confirmation", v.Pipeline().Name, why)
	}
	if len(v.Refs()) > 0 {
		return
	}
	p := v.Pipeline()
	where := ""
	if p.Upstream.Namespaced && len(p.Config.Watch.Namespaces) > 0 {
		where = " in namespace " + spelling.Either(p.Config.Watch.Namespaces)
	}
	selected := ""
	if w := p.Config.Watch; w.LabelSelector != nil || w.NamespaceSelector != nil || len(w.MatchConditions) > 0 {
		selected = " that its watch selects"
	}
	note("operator %s: no %s%s%s", p.Name, p.Upstream.GVK.Kind, where, selected)
}

// noteUnknown names objects about which nothing follows since a match condition cannot be evaluated for them.
func noteUnknown(v *survey.Survey, note func(format string, args ...any)) {
	const shown = 3
	unknown := v.Unknown()
	for i, ref := range slices.SortedFunc(maps.Keys(unknown), operator.Ref.Compare) {
		if i == shown {
			note("operator %s: of %d more it is not known either", v.Pipeline().Name, len(unknown)-shown)
			return
		}
		note("operator %s: %s %s: %s: %v", v.Pipeline().Name, v.Pipeline().Upstream.GVK.Kind, ref, findings.LeftAsItIs, unknown[ref])
	}
}

// progressLine shows how far a survey is: at a terminal on one line that is written over, else on lines of their own.
type progressLine struct {
	w            io.Writer
	on, terminal bool

	mu   sync.Mutex
	last string
}

func (l *progressLine) print(p survey.Progress) {
	if !l.on {
		return
	}
	text := fmt.Sprintf("operator %s: %d of %d upstreams", p.Operator, p.Done, p.Total)
	if len(p.Waiting) > 0 {
		text = fmt.Sprintf("operator %s: listing %s", p.Operator, strings.Join(p.Waiting, ", "))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if text == l.last {
		return
	}
	l.last = text
	if l.terminal {
		fmt.Fprint(l.w, "\r\x1b[K"+text)
		return
	}
	fmt.Fprintln(l.w, text)
}

// note writes something beside the results.
func (l *progressLine) note(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clearLocked()
	fmt.Fprintf(l.w, "note: "+format+"\n", args...)
}

// noteSource says that rows cannot be read any more, or can be again.
func (l *progressLine) noteSource(operator string, err error) {
	if err == nil {
		l.note("operator %s: the rows are read again", operator)
		return
	}
	l.note("operator %s: the rows of the last result stay, will retry: %v", operator, err)
}

// clear takes the line away before something else is written.
func (l *progressLine) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clearLocked()
}

func (l *progressLine) clearLocked() {
	if l.terminal && l.last != "" {
		fmt.Fprint(l.w, "\r\x1b[K")
		l.last = ""
	}
}
