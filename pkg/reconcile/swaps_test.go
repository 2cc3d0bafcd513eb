package reconcile

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// known are upstreams by name, with their digests. It implements otherUpstreams.
type known map[string]string

func (k known) isCurrent(at pipeline.Ref, digest drift.Sum) bool {
	now, ok := k[at.Name]
	return ok && drift.Digest(now) == digest
}

func (k known) isGone(at pipeline.Ref, _ types.UID) bool { return k[at.Name] == "gone" }

// TestSwapsBoard: processes that share a board find the circles that TestCircles finds in one process. Each row is what upstreams publish in
// turn, as "upstream: object, what it waits for"; an upstream without objects no longer waits, one with a mark has another config.
func TestSwapsBoard(t *testing.T) {
	long := "b: " + strings.Repeat("2", maxBoardEntry) + " 1"
	for _, row := range []struct {
		reason string
		turns  []string
		edited map[string]string // put on the board before the last turn
		now    known             // upstreams that are not as they were published
		gives  string            // what the last one is told
		board  string            // who is on the board
	}{
		{"nobody waits for it", []string{"a: 1 2"}, nil, nil, "", "a"},
		{"the last one closes the circle", []string{"a: 1 2", "b: 2 1"}, nil, nil, "2", "a b"},
		{"so does one of three", []string{"a: 1 2", "b: 2 3", "c: 3 1"}, nil, nil, "3", "a b c"},
		{"one is enough", []string{"a: 1 2", "b: 2 1", "a: 1 2"}, nil, nil, "", "a b"},
		{"it goes on giving way, in another process as well", []string{"a: 1 2", "b: 2 1", "b: 2 1"}, nil, nil, "2", "a b"},
		{"the other one has changed", []string{"a: 1 2", "b: 2 1"}, nil, known{"a": "otherwise"}, "", "a b"},
		{"the other one is another process's, and gone", []string{"a: 1 2", "b: 2 1"}, nil, known{"a": ""}, "", "a b"},
		{"the other one is gone", []string{"a: 1 2", "b: 2 1"}, nil, known{"a": "gone"}, "", "b"},
		{"the other one no longer waits", []string{"a: 1 2", "a:", "b: 2 1"}, nil, nil, "", "b"},
		{"it no longer waits", []string{"a: 1 2", "b: 2 1", "b:"}, nil, nil, "", "a"},
		{"the other one was decided on by another config", []string{"a': 1 2", "b: 2 1"}, nil, nil, "", "a b"},
		{"something else is on the board", []string{"a: 1 2", "b: 2 1"}, map[string]string{"note": "by hand"}, nil, "2", "a b note"},
		{"nonsense instead of a digest", []string{"a: 1 2", "b: 2 1"}, map[string]string{boardKey("u-a"): `{"uid": "u-a", "name": "a", "digest": "1", "blockers": {"1": ["2"]}}`}, nil, "", "b"},
		{"an upstream that needs too much room", []string{"a: 1 2", long}, nil, nil, "full", "a"},
		{"a board that is full", []string{"a: 1 2", "b: 2 1"}, map[string]string{"note": strings.Repeat("x", maxBoard)}, nil, "full", "a note"},
	} {
		entries, gives := map[string]string{}, ""
		now := known{"a": "a", "b": "b", "c": "c"}
		maps.Copy(now, row.now)
		for i, turn := range row.turns {
			name, objects, _ := strings.Cut(turn, ":")
			w := waitingUpstream{digest: drift.Digest(name)}
			if of := strings.Fields(objects); len(of) > 0 {
				w.blockers = map[types.UID][]types.UID{types.UID(of[0]): {types.UID(of[1])}}
			}
			if i == len(row.turns)-1 {
				maps.Copy(entries, row.edited)
			}
			by := "config"
			if strings.HasSuffix(name, "'") {
				name, by = strings.TrimSuffix(name, "'"), "another config"
				w.digest = drift.Digest(name)
			}
			fits := w.publish(entries, boardEntry{UID: types.UID("u-" + name), Name: name, Config: by}, now)
			if gives = fmt.Sprint(slices.Collect(maps.Keys(w.givesWay))); !fits {
				gives = "[full]"
			}
		}
		if gives != "["+row.gives+"]" {
			t.Errorf("%s: %s gives way, want %s", row.reason, gives, row.gives)
		}
		var board []string
		for _, key := range slices.Sorted(maps.Keys(entries)) {
			for _, name := range []string{"a", "b", "c"} {
				if key == boardKey(types.UID("u-"+name)) {
					key = name
				}
			}
			board = append(board, key)
		}
		slices.Sort(board)
		if have := strings.Join(board, " "); have != row.board {
			t.Errorf("%s: on the board are %s, want %s", row.reason, have, row.board)
		}
	}
}
