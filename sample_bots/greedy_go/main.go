// A bot for the LINKO! referee.
//
// This file exchanges messages with the referee. policy.go makes the decisions.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"example.org/linko-bot/linko"
)

const (
	protocolVersion = 1
	maxGames        = 64 // the number of games that the bot can play at the same time
	closingLimit    = time.Second
)

func main() {
	log.SetFlags(0)
	address, token := os.Getenv("REFEREE_ADDRESS"), os.Getenv("REFEREE_TOKEN")
	if address == "" || token == "" {
		fmt.Fprintln(os.Stderr, "REFEREE_ADDRESS or REFEREE_TOKEN is missing: the referee starts this"+
			" bot, try `referee play . path/to/another`")
		os.Exit(2)
	}
	if err := play(address, token); err != nil {
		log.Fatal(err)
	}
}

// play connects to the referee and plays until the goodbye.
func play(address, token string) error {
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stream, err := linko.NewRefereeServiceClient(connection).Play(ctx)
	if err != nil {
		return err
	}
	if err := converse(stream, token); err != nil {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	// The referee should close its side now. Do not wait longer than closingLimit for it.
	time.AfterFunc(closingLimit, cancel)
	_, _ = stream.Recv()
	return nil
}

// converse sends the hello and answers messages until the goodbye. It returns an error if the stream
// ends without a goodbye.
func converse(stream linko.RefereeService_PlayClient, token string) error {
	hello := &linko.Hello{
		ProtocolVersion: protocolVersion,
		Token:           token,
		Name:            "linko-bot", // only for logs; tables show the name in bot.toml
		MaxGames:        maxGames,
	}
	if err := send(stream, &linko.BotMessage{Hello: hello}); err != nil {
		return err
	}
	inProgress := games{}
	for {
		message, err := stream.Recv()
		if err != nil {
			return fmt.Errorf("the stream ended without a goodbye: %w", err)
		}
		if answer := inProgress.answer(message); answer != nil {
			if err := send(stream, answer); err != nil {
				return err
			}
		}
		if goodbye := message.GetGoodbye(); goodbye != nil {
			if goodbye.GetReason() != "" {
				log.Print("goodbye: ", goodbye.GetReason())
			}
			return nil
		}
	}
}

// send sends a message. It ignores the end of the stream, because the next Recv returns the reason.
func send(stream linko.RefereeService_PlayClient, message *linko.BotMessage) error {
	err := stream.Send(message)
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// games maps game ids to the games in progress.
type games map[string]*game

// answer handles a message. It returns a Ready for each game start and a Reply for each request, or
// nil if the message needs no answer.
func (g games) answer(message *linko.RefereeMessage) *linko.BotMessage {
	answer := &linko.BotMessage{}
	for _, start := range message.GetGameStarts() {
		g[start.GetGameId()] = newGame(start)
		answer.Ready = append(answer.Ready, &linko.Ready{GameId: start.GetGameId()})
	}
	for _, request := range message.GetRequests() {
		answer.Replies = append(answer.Replies, &linko.Reply{
			GameId:     request.GetGameId(),
			DecisionId: request.GetDecisionId(),
			Action:     g[request.GetGameId()].decide(request),
		})
	}
	for _, end := range message.GetGameEnds() {
		delete(g, end.GetGameId())
	}
	if len(answer.Ready) == 0 && len(answer.Replies) == 0 {
		return nil
	}
	return answer
}
