package main

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"example.org/linko-bot/linko"
)

const (
	kindPlay             = linko.DecisionKind_DECISION_KIND_PLAY
	kindTakeOrLeave      = linko.DecisionKind_DECISION_KIND_TAKE_OR_LEAVE
	kindReclaimOrDiscard = linko.DecisionKind_DECISION_KIND_RECLAIM_OR_DISCARD
	kindDraw             = linko.DecisionKind_DECISION_KIND_DRAW
	kindOptionalDraw     = linko.DecisionKind_DECISION_KIND_OPTIONAL_DRAW
	kindGhostSet         = linko.DecisionKind_DECISION_KIND_GHOST_SET
	kindOfTheFuture      = linko.DecisionKind(99)
)

var (
	take     = choose(linko.Choice_CHOICE_TAKE)
	leave    = choose(linko.Choice_CHOICE_LEAVE)
	reclaim  = choose(linko.Choice_CHOICE_RECLAIM)
	discard  = choose(linko.Choice_CHOICE_DISCARD)
	drawDeck = choose(linko.Choice_CHOICE_DRAW_DECK)
	pass     = choose(linko.Choice_CHOICE_PASS)

	expert = &linko.Ruleset{OnesSnatchJokers: true, OnesSnatchThirteens: true}
)

func TestDecide(t *testing.T) {
	for _, test := range []struct {
		name  string
		kind  linko.DecisionKind
		rules *linko.Ruleset
		view  *linko.View
		legal []*linko.Action
		want  *linko.Action
	}{
		{
			name:  "play: a victim counts as much as a card",
			kind:  kindPlay,
			view:  &linko.View{Tables: tables(nil, layer(2, 1, 0), layer(1, 1, 0))},
			legal: plays(layer(3, 1, 0), layer(9, 1, 0), layer(9, 2, 0)),
			want:  playOf(9, 1, 0),
		},
		{
			name:  "play: equal gains, fewer jokers",
			kind:  kindPlay,
			view:  &linko.View{Tables: tables(nil, nil)},
			legal: plays(layer(2, 2, 0), layer(9, 1, 1), layer(joker, 0, 2)),
			want:  playOf(2, 2, 0),
		},
		{
			name: "play: equal gains and jokers, highest value",
			kind: kindPlay,
			view: &linko.View{Tables: tables(nil, nil)},
			legal: plays(layer(7, 2, 0), layer(7, 2, 1), layer(12, 2, 0), layer(12, 2, 1),
				layer(joker, 0, 1)),
			want: playOf(12, 2, 1),
		},
		{
			name:  "play: jokers count as cards",
			kind:  kindPlay,
			view:  &linko.View{Tables: tables(nil, nil)},
			legal: plays(layer(5, 1, 0), layer(5, 1, 1), layer(joker, 0, 1)),
			want:  playOf(5, 1, 1),
		},
		{
			name: "play: only top layers of other seats are victims",
			kind: kindPlay,
			view: &linko.View{Seat: 1, Tables: []*linko.Table{
				{Layers: []*linko.Layer{layer(1, 1, 0), layer(1, 3, 0)}},
				{Layers: []*linko.Layer{layer(1, 1, 0)}},
			}},
			legal: plays(layer(8, 1, 0), layer(8, 2, 0)),
			want:  playOf(8, 2, 0),
		},
		{
			name:  "play: 1s snatch 13s if the rules say so",
			kind:  kindPlay,
			rules: expert,
			view:  &linko.View{Tables: tables(nil, layer(13, 1, 0))},
			legal: plays(layer(1, 1, 0), layer(12, 1, 0)),
			want:  playOf(1, 1, 0),
		},
		{
			name:  "play: 1s do not snatch 13s by other rules",
			kind:  kindPlay,
			rules: &linko.Ruleset{OnesSnatchJokers: true},
			view:  &linko.View{Tables: tables(nil, layer(13, 1, 0))},
			legal: plays(layer(1, 1, 0), layer(12, 1, 0)),
			want:  playOf(12, 1, 0),
		},
		{
			name:  "play: 1s snatch jokers if the rules say so",
			kind:  kindPlay,
			rules: expert,
			view:  &linko.View{Tables: tables(nil, layer(joker, 0, 2))},
			legal: plays(layer(1, 1, 1), layer(12, 3, 0)),
			want:  playOf(1, 1, 1),
		},
		{
			name:  "play: 1s do not snatch jokers by other rules",
			kind:  kindPlay,
			rules: &linko.Ruleset{OnesSnatchThirteens: true},
			view:  &linko.View{Tables: tables(nil, layer(joker, 0, 2))},
			legal: plays(layer(1, 1, 1), layer(12, 3, 0)),
			want:  playOf(12, 3, 0),
		},
		{
			name:  "take a card whose value is held already",
			kind:  kindTakeOrLeave,
			view:  &linko.View{Hand: hand(4, 4, 10), Snatched: layer(4, 1, 0)},
			legal: []*linko.Action{take, leave},
			want:  take,
		},
		{
			name:  "take three cards, jokers included",
			kind:  kindTakeOrLeave,
			view:  &linko.View{Hand: hand(4, 4, 10), Snatched: layer(9, 2, 1)},
			legal: []*linko.Action{take, leave},
			want:  take,
		},
		{
			name:  "leave two cards whose value is not held",
			kind:  kindTakeOrLeave,
			view:  &linko.View{Hand: hand(4, 4, 10), Snatched: layer(9, 2, 0)},
			legal: []*linko.Action{take, leave},
			want:  leave,
		},
		{
			name:  "reclaim a joker if the hand has another",
			kind:  kindReclaimOrDiscard,
			view:  &linko.View{Hand: hand(4, joker), Snatched: layer(joker, 0, 1)},
			legal: []*linko.Action{reclaim, discard},
			want:  reclaim,
		},
		{
			name:  "discard a joker if the hand has no other",
			kind:  kindReclaimOrDiscard,
			view:  &linko.View{Hand: hand(4), Snatched: layer(joker, 0, 1)},
			legal: []*linko.Action{reclaim, discard},
			want:  discard,
		},
		{
			name:  "draw the card that is held most often",
			kind:  kindDraw,
			view:  &linko.View{Hand: hand(4, 4, 10)},
			legal: []*linko.Action{drawDeck, display(0, 13), display(1, 10), display(2, 4)},
			want:  display(2, 4),
		},
		{
			name:  "draw from the deck rather than an equally good 6",
			kind:  kindDraw,
			view:  &linko.View{Hand: hand(4, 4, 10)},
			legal: []*linko.Action{drawDeck, display(0, 6), display(1, 5), display(2, 3)},
			want:  drawDeck,
		},
		{
			name:  "draw a joker rather than any other card",
			kind:  kindDraw,
			view:  &linko.View{Hand: hand(4, 4, 4, 4, 4, 4)},
			legal: []*linko.Action{drawDeck, display(3, 4), display(5, joker)},
			want:  display(5, joker),
		},
		{
			name:  "draw the leftmost of two groups with equal best cards",
			kind:  kindDraw,
			view:  &linko.View{Hand: hand(2)},
			legal: []*linko.Action{display(1, 13, 12), display(2, 3, 13, 7), display(4, 9)},
			want:  display(1, 13, 12),
		},
		{
			name:  "pass if no card on display is held",
			kind:  kindOptionalDraw,
			view:  &linko.View{Hand: hand(4, 4, 10)},
			legal: []*linko.Action{pass, drawDeck, display(0, 13), display(1, 12), display(4, 5)},
			want:  pass,
		},
		{
			name:  "draw a card that is held instead of passing",
			kind:  kindOptionalDraw,
			view:  &linko.View{Hand: hand(1)},
			legal: []*linko.Action{pass, drawDeck, display(2, 1)},
			want:  display(2, 1),
		},
		{
			name:  "snatch the ghost's set that is held most often",
			kind:  kindGhostSet,
			view:  &linko.View{Hand: hand(3, 3, 5)},
			legal: []*linko.Action{ghost(3), ghost(5), ghost(12)},
			want:  ghost(3),
		},
		{
			name:  "pass on the ghost if no card of its sets is held",
			kind:  kindGhostSet,
			view:  &linko.View{Hand: hand(4, 4, 10)},
			legal: []*linko.Action{ghost(3), ghost(12), pass},
			want:  pass,
		},
		{
			name:  "snatch a set that is held instead of passing",
			kind:  kindGhostSet,
			view:  &linko.View{Hand: hand(3)},
			legal: []*linko.Action{ghost(3), pass},
			want:  ghost(3),
		},
		{
			name:  "choose the first action for an unknown kind of decision",
			kind:  kindOfTheFuture,
			view:  &linko.View{Hand: hand(3)},
			legal: []*linko.Action{drawDeck, display(0, joker)},
			want:  drawDeck,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := newGame(&linko.GameStart{Ruleset: test.rules})
			got := g.decide(&linko.Request{Kind: test.kind, View: test.view, Legal: test.legal})
			if !proto.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func hand(cards ...uint32) []uint32 {
	counts := make([]uint32, joker+1)
	for _, card := range cards {
		counts[card]++
	}
	return counts
}

func layer(value, naturals, jokers uint32) *linko.Layer {
	return &linko.Layer{Value: value, Naturals: naturals, Jokers: jokers}
}

// tables returns a table for each seat with the given top layer; nil means an empty table.
func tables(tops ...*linko.Layer) []*linko.Table {
	tables := make([]*linko.Table, len(tops))
	for seat, top := range tops {
		tables[seat] = &linko.Table{}
		if top != nil {
			tables[seat].Layers = []*linko.Layer{top}
		}
	}
	return tables
}

func plays(layers ...*linko.Layer) []*linko.Action {
	actions := make([]*linko.Action, len(layers))
	for i, layer := range layers {
		actions[i] = &linko.Action{Kind: &linko.Action_Play{Play: layer}}
	}
	return actions
}

func playOf(value, naturals, jokers uint32) *linko.Action {
	return plays(layer(value, naturals, jokers))[0]
}

func display(slot uint32, cards ...uint32) *linko.Action {
	draw := &linko.DrawDisplay{Slot: slot, Cards: cards}
	return &linko.Action{Kind: &linko.Action_DrawDisplay{DrawDisplay: draw}}
}

func ghost(value uint32) *linko.Action {
	return &linko.Action{Kind: &linko.Action_GhostValue{GhostValue: value}}
}
