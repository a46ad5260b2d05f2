// Package actors holds the role actors: reviewer, criticizer and ref-analyst.
//
// A role plans its round ([PlanReview], [PlanCriticism], [PlanAnalysis]): which
// lanes, with which brief. The role actor ([NewRound]) then runs the lanes in
// batches of three and judges each answer as it comes. What a round's answers
// mean for the user is put into words by [Text].
//
// Nothing here touches files: the supervisor gives texts and settings in and
// records what comes out.
package actors
