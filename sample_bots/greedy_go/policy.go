package main

import (
	"cmp"
	"slices"

	"example.org/linko-bot/linko"
)

const (
	thirteen = 13
	joker    = 14 // as a card, and as the value of a layer of jokers only

	manyCards  = 3    // a snatched layer of this size is worth having, whatever it is
	jokerWorth = 1000 // more than any other card
	deckWorth  = 6    // an unknown card
	passWorth  = 99   // less than any card that is held already, more than any other
)

// game is what the bot knows of one game beyond the request. A bot with a memory keeps it here.
type game struct {
	rules *linko.Ruleset
}

// newGame gets ready for a game.
func newGame(start *linko.GameStart) *game {
	return &game{rules: start.GetRuleset()}
}

// decide chooses one of the legal actions: it grabs the most and looks no further.
func (g *game) decide(request *linko.Request) *linko.Action {
	view, legal := request.GetView(), request.GetLegal()
	switch request.GetKind() {
	case linko.DecisionKind_DECISION_KIND_PLAY:
		return g.bestPlay(view, legal)
	case linko.DecisionKind_DECISION_KIND_TAKE_OR_LEAVE:
		if isWorthHaving(view) {
			return choose(linko.Choice_CHOICE_TAKE)
		}
		return choose(linko.Choice_CHOICE_LEAVE)
	case linko.DecisionKind_DECISION_KIND_RECLAIM_OR_DISCARD:
		if isWorthHaving(view) {
			return choose(linko.Choice_CHOICE_RECLAIM)
		}
		return choose(linko.Choice_CHOICE_DISCARD)
	case linko.DecisionKind_DECISION_KIND_DRAW,
		linko.DecisionKind_DECISION_KIND_OPTIONAL_DRAW,
		linko.DecisionKind_DECISION_KIND_GHOST_SET:
		return mostWorthy(view, legal)
	default: // a kind that a later version of the protocol may add
		return legal[0]
	}
}

// bestPlay brings the highest gain; of equals it has the fewest jokers, then the highest value.
func (g *game) bestPlay(view *linko.View, legal []*linko.Action) *linko.Action {
	return slices.MaxFunc(legal, func(a, b *linko.Action) int {
		one, other := a.GetPlay(), b.GetPlay()
		return cmp.Or(
			cmp.Compare(g.gain(view, one), g.gain(view, other)),
			cmp.Compare(other.GetJokers(), one.GetJokers()),
			cmp.Compare(one.GetValue(), other.GetValue()),
		)
	})
}

// gain counts the cards that a play brings to the own table and takes off those of others.
func (g *game) gain(view *linko.View, play *linko.Layer) uint32 {
	victims := uint32(0)
	for seat, table := range view.GetTables() {
		layers := table.GetLayers()
		if seat != int(view.GetSeat()) && len(layers) > 0 && g.snatches(play, layers[len(layers)-1]) {
			victims++
		}
	}
	return size(play) * (1 + victims)
}

// snatches tells whether a play would snatch another seat's top layer.
func (g *game) snatches(play, top *linko.Layer) bool {
	if size(play) != size(top) {
		return false
	}
	if play.GetValue() == 1 {
		return top.GetValue() == joker && g.rules.GetOnesSnatchJokers() ||
			top.GetValue() == thirteen && g.rules.GetOnesSnatchThirteens()
	}
	return top.GetValue() < play.GetValue()
}

// isWorthHaving tells whether the snatched layer would make a good layer in the own hand.
func isWorthHaving(view *linko.View) bool {
	layer := view.GetSnatched()
	return size(layer) >= manyCards || view.GetHand()[layer.GetValue()] >= 1
}

// mostWorthy is the action that brings the most worthy card; of equals, the one named first.
func mostWorthy(view *linko.View, legal []*linko.Action) *linko.Action {
	return slices.MaxFunc(legal, func(a, b *linko.Action) int {
		return cmp.Compare(worth(view, a), worth(view, b))
	})
}

// worth rates a draw or a set of the ghost.
func worth(view *linko.View, action *linko.Action) uint32 {
	switch kind := action.GetKind().(type) {
	case *linko.Action_DrawDisplay: // a single card, or a group: its best card counts
		best := uint32(0)
		for _, card := range kind.DrawDisplay.GetCards() {
			best = max(best, cardWorth(view, card))
		}
		return best
	case *linko.Action_GhostValue:
		return cardWorth(view, kind.GhostValue)
	}
	if action.GetChoice() == linko.Choice_CHOICE_PASS {
		return passWorth
	}
	return deckWorth
}

// cardWorth puts jokers first, then the cards of which the hand has the most, then high cards.
func cardWorth(view *linko.View, card uint32) uint32 {
	if card == joker {
		return jokerWorth
	}
	return 100*view.GetHand()[card] + card
}

func size(layer *linko.Layer) uint32 {
	return layer.GetNaturals() + layer.GetJokers()
}

func choose(choice linko.Choice) *linko.Action {
	return &linko.Action{Kind: &linko.Action_Choice{Choice: choice}}
}
