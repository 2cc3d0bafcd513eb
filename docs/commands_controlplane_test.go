//go:build controlplane

package docs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/internal/controlplane"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/internal/tools"
)

const (
	// patience is how long one block may take: a kind that is new is known to the garbage collector after half a minute.
	patience = 5 * time.Minute
	// lookAgain is how long what is shown may be in coming.
	lookAgain = 4 * time.Minute
	// maxNotRun is how many blocks may say that they cannot be run here.
	maxNotRun = 5
)

// cluster finds commands that ask an API server.
var cluster = regexp.MustCompile(`\b(kubectl|helm|corollary (run|plan|get|why|reconcile|confirm|release|migrate))\b|--live`)

// reader is what makes a shell as slow as a reader is who types the next line, and as patient: a kind that was defined
// is served by then, its schema included, and what kubectl waits for may take a busy machine longer than kubectl's own
// half minute, or than the page allows a machine that has nothing else to do (the last --timeout counts).
//
//nolint:dupword // Shell closes each loop with done.
const reader = `
kubectl() {
	local printed code=0
	case " $* " in
	*" wait "*) command kubectl "$@" --timeout=4m ;;
	*" apply "* | *" create "*)
		printed=$(command kubectl "$@") || code=$?
		[ -z "$printed" ] || printf '%s\n' "$printed"
		case $printed in *customresourcedefinition*) served ;; esac
		return $code
		;;
	*) command kubectl "$@" ;;
	esac
}
served() {
	local group plural kind versions version
	command kubectl get crd -o jsonpath='{range .items[*]}{.spec.group} {.spec.names.plural} {.spec.names.kind}'\
' {.spec.versions[?(@.served==true)].name}{"\n"}{end}' |
		while read -r group plural kind versions; do
			for version in $versions; do
				until says "/apis/$group/$version" "\"name\":\"$plural\"" && says "/openapi/v3/apis/$group/$version" "\"kind\":\"$kind\"" &&
					command kubectl api-resources --cached=false -o name 2>/dev/null | grep -Fx "$plural.$group" >/dev/null; do sleep 0.1; done
			done
		done
}
says() { command kubectl get --raw "$1" 2>/dev/null | grep -F "$2" >/dev/null; }
`

// looks finds commands that change nothing.
var looks = regexp.MustCompile(`^(kubectl (get|describe|events|auth can-i)|corollary (check|get|plan|why)) `)

// TestCommands types the commands of each page into a shell, one page after the other block by block, in a directory
// with the examples and the chart, against a control plane like that of `make cluster`.
func TestCommands(t *testing.T) {
	bin := programs(t)
	notRun := 0
	for _, p := range append(pages(t), front(t, "../README.md"), front(t, "../CONTRIBUTING.md")) {
		for _, b := range p.blocks {
			if b.notRun != "" {
				notRun++
				t.Logf("%s:%d is not run: %s", p.path, b.line, b.notRun)
			}
		}
		t.Run(strings.TrimPrefix(p.path, "../"), func(t *testing.T) {
			t.Parallel()
			follow(t, p, bin)
		})
	}
	if notRun > maxNotRun {
		t.Errorf("%d blocks are not run, more than %d: what a page says should be tried", notRun, maxNotRun)
	}
}

// front is a page for whoever works on the project. What it says of make, which the tests themselves are run by, is
// only looked up, and so are single tests; the config that it shows is saved as app.yaml.
func front(t *testing.T, path string) page {
	t.Helper()
	p := must.Get(parsePage(path, read(t, path))).In(t)
	makefile, typed := read(t, "../Makefile"), regexp.MustCompile(`(?m)^(?:make|go test)\b *([a-z-]*).*\n`)
	for i := range p.blocks {
		b := &p.blocks[i]
		if b.language == "yaml" && b.file == "" {
			b.file = "app.yaml"
		}
		if b.language != "sh" {
			continue
		}
		for _, m := range typed.FindAllStringSubmatch(b.text, -1) {
			if strings.HasPrefix(m[0], "make") && m[1] != "" && !strings.Contains(makefile, "\n"+m[1]+":") {
				t.Errorf("%s:%d: there is nothing to make of the name %s", path, b.line, m[1])
			}
		}
		b.text = typed.ReplaceAllString(b.text, "")
	}
	return p
}

// follow does what a page says.
func follow(t *testing.T, p page, bin string) {
	s := newSession(t, p, bin)
	printed := ""
	for _, b := range p.blocks {
		if b.stop {
			s.stop()
		}
		at := fmt.Sprintf("%s:%d", p.path, b.line)
		switch {
		case t.Failed():
			return
		case b.notRun != "":
		case b.file != "":
			s.save(b)
		case b.background:
			s.start(b.text)
		case b.language == "sh":
			printed = s.run(at, b.text, b.exit)
		case b.language == "console":
			for _, c := range console(b.text) {
				if c.input != "" {
					printed = s.run(at, c.input, b.exit)
				}
				printed = s.compare(at, c, printed, b.exit)
			}
		}
	}
	s.stop()
}

// session is a reader at a terminal.
type session struct {
	t          *testing.T
	dir        string // the copy of the repository
	state      string // a script that restores the shell as the last block left it
	env        []string
	background []*process
}

// process is what runs in another terminal.
type process struct {
	*exec.Cmd
	printed *bytes.Buffer
	done    chan error
}

// newSession prepares a directory and, where the page needs one, a control plane.
func newSession(t *testing.T, p page, bin string) *session {
	t.Helper()
	home := t.TempDir()
	s := &session{t: t, dir: filepath.Join(home, "corollary"), state: filepath.Join(home, "state.sh")}
	for _, folder := range []string{"examples/configs", "examples/conversions", "examples/sources", "charts/corollary", "docs/schema"} {
		err := os.CopyFS(filepath.Join(s.dir, folder), os.DirFS(filepath.Join("..", folder)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	at := s.dir
	if example, ok := strings.CutPrefix(p.path, "../examples/"); ok && example != "configs/README.md" {
		at = filepath.Join(s.dir, "examples", filepath.Dir(example)) // these are typed in their folder
	}
	must.Do(t, os.WriteFile(s.state, fmt.Appendf(nil, "cd %q\n", at), 0o600))
	s.env = []string{"HOME=" + home, "STATE=" + s.state, "PATH=" + bin + ":/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "TZ=UTC",
		"TERM=dumb",
		"COROLLARY_HEALTH_PROBE_BIND_ADDRESS=0"} // pages are typed at one time and cannot all have the same port
	text := ""
	for _, b := range p.blocks {
		if b.runs() && b.notRun == "" {
			text += b.text
		}
	}
	if cluster.MatchString(text) && !strings.Contains(text, "export KUBECONFIG=") {
		s.env = append(s.env, "KUBECONFIG="+newCluster(t, home))
	}
	t.Cleanup(s.stop)
	return s
}

// newCluster starts what `make cluster` starts and returns its kubeconfig.
func newCluster(t *testing.T, dir string) string {
	t.Helper()
	plane := must.Get(controlplane.Start(t.Context(), controlplane.Options{Controllers: []string{
		controlplane.GarbageCollector, controlplane.Namespaces, controlplane.Deployments, controlplane.ReplicaSets}})).In(t)
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	text := must.Get(controlplane.Kubeconfig(plane.Config())).In(t)
	path := filepath.Join(dir, "kubeconfig")
	must.Do(t, os.WriteFile(path, text, 0o600))
	return path
}

// shell returns a bash that goes on where the last block left off: in its directory, with its exported variables.
func (s *session) shell(ctx context.Context, text string, remember bool) *exec.Cmd {
	state := must.Get(os.ReadFile(s.state)).In(s.t)
	script := string(state) + reader
	if remember {
		script += `trap 'code=$?; { declare -px; printf "cd %q\n" "$PWD"; } > "$STATE"; exit $code' EXIT` + "\n"
	}
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script+text)
	cmd.Dir, cmd.Env = s.dir, s.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Minute // for the rest of the output, once the shell has ended
	return cmd
}

// run runs a block's text and returns what it printed. One that only looks is typed again for a while, as a reader
// would do, where it ends otherwise than the page says: a kind that is new is served a moment after its definition is
// taken, and a role is in force a moment after it is stored.
func (s *session) run(at, text string, exit int) string {
	s.t.Helper()
	began := time.Now()
	for {
		printed, err := s.typed(text, exit)
		if err == nil {
			if took := time.Since(began); took > 5*time.Second {
				s.t.Logf("%s took %.1f s", at, took.Seconds())
			}
			return printed
		}
		if !looks.MatchString(text) || time.Since(began) > testkit.Patient(lookAgain) {
			s.t.Fatalf("%s: %v:\n%s\nit printed:\n%s", at, err, text, printed)
		}
	}
}

// typed runs a block's text once. The error says that it did not end with the exit code.
func (s *session) typed(text string, exit int) (string, error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), testkit.Patient(patience))
	defer cancel()
	cmd := s.shell(ctx, text, true)
	output, err := cmd.CombinedOutput()
	printed := withoutAsides(text, string(output))
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != exit || ctx.Err() != nil {
		if err = errors.Join(err, ctx.Err()); err == nil {
			err = errors.New("exit code 0")
		}
		return printed, fmt.Errorf("the block does not end with exit code %d: %w", exit, err)
	}
	return printed, nil
}

// compare holds what a command printed to what the page shows. One that only looks is typed again for a while:
// events come when they come, and a schema after its kind.
func (s *session) compare(at string, c command, printed string, exit int) string {
	s.t.Helper()
	deadline := time.Now().Add(testkit.Patient(lookAgain))
	for c.output != "" && !matches(c.output, printed) {
		if !looks.MatchString(c.input) || time.Now().After(deadline) {
			s.t.Errorf("%s: the page shows\n%s\nbut this was printed:\n%s", at, c.output, printed)
			break
		}
		printed = s.run(at, c.input, exit)
	}
	return printed
}

// start runs a block's command until stop. It takes the shell's place, which would have ways of its own with a Ctrl-C.
func (s *session) start(text string) {
	s.t.Helper()
	if strings.Count(text, "\n") != 1 {
		s.t.Fatalf("what runs in another terminal is not one command:\n%s", text)
	}
	p := &process{Cmd: s.shell(context.Background(), "exec "+text, false), printed: &bytes.Buffer{}, done: make(chan error, 1)}
	p.Stdout, p.Stderr = p.printed, p.printed
	must.Do(s.t, p.Start())
	go func() { p.done <- p.Wait() }()
	s.background = append(s.background, p)
	if _, path, ok := strings.Cut(text, "--write-kubeconfig "); ok { // a reader waits until it is printed
		s.run(text, "until [ -s "+strings.TrimSpace(path)+" ]; do sleep 0.1; done", 0)
	}
}

// stop presses Ctrl-C in the other terminals; what runs there must end well.
func (s *session) stop() {
	for _, p := range s.background {
		_ = syscall.Kill(-p.Process.Pid, syscall.SIGINT) // an error says that it has ended, which the next lines tell
		select {
		case err := <-p.done:
			if err != nil || s.t.Failed() {
				s.t.Errorf("%q ended with %v and printed:\n%s", p.Args[len(p.Args)-1], err, p.printed)
			}
		case <-time.After(testkit.Patient(patience)):
			_ = p.Cancel()
			s.t.Errorf("%q does not end", p.Args[len(p.Args)-1])
		}
	}
	s.background = nil
}

// save writes a block to the file that the page names.
func (s *session) save(b block) {
	s.t.Helper()
	cmd := s.shell(s.t.Context(), `mkdir -p "$(dirname "$1")"; cat > "$1"`, false)
	cmd.Args = append(cmd.Args, "bash", b.file)
	cmd.Stdin = strings.NewReader(b.text)
	if printed, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("saving %s: %v: %s", b.file, err, printed)
	}
}

// programs returns a directory with corollary, as it is now, and the tools.
func programs(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	// Without a version: git is not asked, which refuses to look into another user's clone.
	build := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Join(bin, "corollary"), "../cmd/corollary")
	if printed, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building corollary: %v: %s", err, printed)
	}
	build = exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Join(bin, "sqlite3"), "../hack/sqlite3")
	if printed, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building sqlite3: %v: %s", err, printed)
	}
	for _, tool := range []string{"kubectl", "helm"} {
		must.Do(t, os.Symlink(tools.Path(t, tool), filepath.Join(bin, tool)))
	}
	return bin
}
