"""What a dishonest provider, observer or node may try against a statement, and the tests that try it.

The first nine verified against a first sketch of the circuit. A test is ``path::function`` below ``tests/``, with the
name of its case in brackets where it has several.
"""

from __future__ import annotations

from pathlib import Path

_LIES = "circuits/test_lies.py"
_REFUSED = f"{_LIES}::test_a_lie_is_refused_and_only_by_the_checks"
_TWO = "contracts/test_two_proofs.py"
_CREDITS = "unit/attest/test_incident_checks.py"
_INCIDENTS = "circuits/test_incident_credit.py::test_a_lie_is_refused_and_only_by_the_checks"
_WEEK = "circuits/test_larger_circuits.py"
_AGREE = "circuits/test_verifiers_agree.py::test_all_verifiers_give_the_verdict_of_the_vector"
_STATEMENTS = "contracts/test_statements.py"
_VERIFIER = "contracts/test_verifier.py"
_BUNDLES = "unit/attest/test_verification_lies.py::test_a_lie_fails_in_its_check"
_PROOFS = "unit/attest/test_verification_proof_lies.py"
_ROOTS = "unit/app/test_roots.py"
_SEALS = "unit/attest/test_seal_checks.py::test_a_block_stands_before_the_first_version_that_counts_by_it"
_WATCHED = "chain/test_watched_in_the_background.py"
_NODE = "chain/test_asking_a_node.py"
_ANCHORING = "chain/test_anchoring_on_a_node.py"

ATTESTATION_LIES: dict[str, tuple[str, ...]] = {
    # --- the nine ---
    "good traffic invented in unused tail windows": (
        f"{_REFUSED}[good_traffic_invented_in_unused_tail_windows]",
        f"{_REFUSED}[good_traffic_invented_in_an_observed_window_after_the_end]",
        f"{_WEEK}::test_good_traffic_after_the_end_of_a_month_has_no_proof",
    ),
    "a bad hour entered as zeros": (f"{_LIES}::test_a_bad_hour_entered_as_zeros_shows_as_idle",),
    "a period of zeros": (f"{_LIES}::test_a_period_of_zeros_shows_as_no_data_and_all_idle",),
    "healthy data in the column of the tiers": (f"{_REFUSED}[healthy_data_in_the_slot_that_carries_the_tiers]",),
    "a fee of 10000/bps mod r": (f"{_REFUSED}[fee_that_wraps_to_one_minor_unit_of_credit]",),
    "thresholds of r - 1": (
        f"{_REFUSED}[threshold_minus_one]",
        f"{_REFUSED}[later_threshold_negative]",
    ),
    "a target of r - 1": (f"{_REFUSED}[target_minus_one]",),
    "a cap of r - 1": (
        f"{_LIES}::test_cap_of_minus_one_is_refused_even_without_the_checks",
        f"{_REFUSED}[cap_that_wraps_to_nothing]",
    ),
    "tiers that sum above 100 %": (
        f"{_LIES}::test_tiers_that_sum_above_one_hundred_percent_pay_the_fee_and_no_more",
        f"{_REFUSED}[tier_above_one_hundred_percent]",
    ),
    # --- incidents ---
    "an incident dropped": (
        f"{_INCIDENTS}[an_incident_dropped_under_the_logged_root]",
        "circuits/test_incident_credit.py::test_a_dropped_incident_shows_in_root_and_count",
    ),
    "an incident paid twice": (f"{_INCIDENTS}[an_incident_paid_twice]",),
    "incidents in another order": (f"{_INCIDENTS}[incidents_in_another_order]",),
    "requests of incidents that wrap around r": (f"{_INCIDENTS}[requests_that_wrap_to_a_small_amount]",),
    "a coefficient out of range": (f"{_INCIDENTS}[coefficient_that_wraps_to_nothing]",),
    "the proof of the tiers alone, as a credit": (
        f"{_TWO}::test_the_first_proof_alone_is_refused",
        f"{_CREDITS}::test_a_proof_that_says_something_else_fails_by_name[no second proof]",
        f"{_CREDITS}::test_a_proof_that_says_something_else_fails_by_name[the tiers are the credit]",
        f"{_CREDITS}::test_a_transaction_with_the_first_proof_alone_is_no_anchor",
    ),
    "a second proof of another statement, of other terms or of other tiers": (
        f"{_TWO}::test_a_second_proof_about_something_else_is_refused[another ctx]",
        f"{_TWO}::test_a_second_proof_about_something_else_is_refused[another amount of the tiers]",
        f"{_TWO}::test_a_second_proof_about_something_else_is_refused[other terms]",
        f"{_TWO}::test_a_second_proof_of_another_period_is_refused",
        f"{_CREDITS}::test_a_proof_that_says_something_else_fails_by_name[another ctx]",
        f"{_CREDITS}::test_a_proof_that_says_something_else_fails_by_name[another amount of the tiers]",
    ),
    "swapped circuits, proofs or verifiers": (
        f"{_TWO}::test_swapped_circuits_are_refused",
        f"{_TWO}::test_a_circuit_that_nobody_agreed_to_is_refused",
        f"{_CREDITS}::test_swapped_proofs_fail",
    ),
    "incidents that are kept back": (f"{_CREDITS}::test_incidents_that_are_kept_back_show_in_what_they_leave",),
    "many incidents, and for that no proof": (f"{_CREDITS}::test_many_incidents_are_no_reason_to_leave_the_proof_out",),
    "an incident left out of those that share the last place of the proof, or counted for more": (
        f"{_CREDITS}::test_a_lie_about_incidents_that_share_a_place_fails",
        f"{_CREDITS}::test_what_is_moved_between_incidents_of_one_place_is_held_to_the_opening",
    ),
    # --- proofs and keys ---
    "a proof under a key without contribution": (
        "unit/attest/test_verification_key.py::test_a_key_under_which_anyone_forges_is_refused",
        "unit/anchor/test_verifier_key.py::test_delta_equal_to_gamma_is_refused_with_either_sign",
        f"{_VERIFIER}::test_a_key_under_which_anyone_forges_is_refused",
        f"{_AGREE}[anything, where delta is gamma]",
        f"{_AGREE}[anything, where delta is minus gamma]",
        f"{_AGREE}[where delta is the generator]",
        f"{_AGREE}[where delta is minus the generator]",
        f"{_PROOFS}::test_a_lie_fails_in_its_check[proof: delta equal to gamma]",
        f"{_PROOFS}::test_a_lie_fails_in_its_check[proof: delta the generator]",
    ),
    "a key of the issuer's own": (f"{_PROOFS}::test_nothing_but_one_check_stands_against_these",),
    "a signal plus r": (
        f"{_AGREE}[signal 5 is r]",
        f"{_STATEMENTS}::test_signals_outside_the_field_are_refused",
        f"{_VERIFIER}::test_a_signal_outside_the_field_reverts",
        "unit/attest/test_groth16.py::test_a_signal_plus_r_is_another_text_of_it_and_refused",
    ),
    "signals too few or too many": (
        f"{_AGREE}[a signal missing]",
        f"{_AGREE}[a signal more]",
        f"{_PROOFS}::test_a_signal_too_few_or_too_many_is_no_bundle",
        "unit/attest/test_groth16.py::test_the_number_of_signals_is_exact",
    ),
    "a malleated proof as another statement": (
        f"{_STATEMENTS}::test_a_rerandomised_proof_is_not_another_statement",
        f"{_STATEMENTS}::test_a_rerandomised_proof_does_not_hold_for_another_period",
        f"{_PROOFS}::test_a_rerandomised_proof_does_not_serve_another_period",
        f"{_AGREE}[that, re-randomised]",
    ),
    "points off their curves or outside the group": (
        f"{_AGREE}[B outside the subgroup]",
        f"{_AGREE}[A off the curve]",
        f"{_VERIFIER}::test_b_outside_the_subgroup_is_no_proof",
    ),
    "errors of several proofs that cancel": (
        "unit/attest/test_groth16_batch.py::test_errors_that_cancel_pass_only_under_powers_that_were_foreseen",
    ),
    "a false proof of a false witness": (
        "circuits/test_model_equals_circuit.py::test_one_more_credit_than_computed_has_no_proof",
        "circuits/test_witness_mutations.py::test_no_wire_of_a_witness_can_have_another_value",
        "circuits/test_proof_makers.py::test_a_lie_has_no_proof",
    ),
    "a development key on a real chain": (
        "unit/anchor/test_verifier_key.py::test_dev_keys_are_refused_everywhere_else",
        "unit/anchor/test_sender_and_replay.py::test_a_dev_key_is_refused_before_anything_is_sent",
        f"{_PROOFS}::test_a_lie_fails_in_its_check[context: another chain]",
    ),
    "a proof under a development key shown as if it meant something": (
        "unit/attest/test_verification.py::test_a_development_key_must_be_accepted_by_name",
        "unit/cli/test_lists.py::test_who_is_shown_a_proof_under_a_development_key_is_told_that_the_issuer_can_forge_it",
    ),
    "a development key called sound": (
        f"{_PROOFS}::test_a_lie_fails_in_its_check[proof: a development key called sound]",
        "circuits/test_prover.py::test_a_key_that_claims_to_be_safe_is_not_a_development_key",
    ),
    "a crafted file of a ceremony": (
        "unit/cli/test_ceremony_command.py::test_what_is_no_key_of_a_ceremony_is_refused_in_words",
        "unit/cli/test_ceremony_command.py::test_a_key_of_zeros_fails_and_nothing_is_to_be_pinned",
        "circuits/test_ceremony.py::test_a_changed_history_is_found",
    ),
    "a key that does not belong to its circuit": (
        "circuits/test_prover.py::test_a_changed_circuit_gets_another_key",
        "circuits/test_prover.py::test_a_damaged_key_is_made_again",
    ),
    "proofs that are mixed up when many are made at a time": (
        "circuits/test_parallel_proofs.py::test_eight_proofs_at_a_time_all_hold",
    ),
    "a circuit that says something else than the settlement": (
        "circuits/test_model_equals_circuit.py::test_circuit_proves_what_the_model_says",
        "circuits/test_larger_circuits.py",
    ),
    # --- windows, counts, credit ---
    "a bad window that is zeroed, dropped or excluded": (
        "unit/attest/test_hidden_windows.py::test_a_bad_hour_that_is_hidden_shows",
        f"{_WEEK}::test_a_bad_hour_of_a_week_that_disappears_shows_in_the_summary",
        f"{_WEEK}::test_dropped_hours_do_not_read_met_below_the_floor",
        f"{_REFUSED}[coverage_below_the_floor]",
        f"{_BUNDLES}[statement: idle hours hidden]",
        f"{_BUNDLES}[statement: an hour unobserved]",
        f"{_BUNDLES}[statement: an hour excluded]",
    ),
    "facts that the counts leave out": (
        "unit/attest/test_recount.py::test_a_request_that_was_invented_or_dropped_shows",
        "unit/attest/test_recount.py::test_without_all_batches_nothing_is_held_against_the_seals",
        "unit/attest/test_recount.py::test_what_no_seal_names_is_counted",
    ),
    "other counts sealed afterwards": (f"{_BUNDLES}[telemetry: other counts sealed, signed and logged]",),
    "a signature over the telemetry that the collector did not make": (
        f"{_BUNDLES}[telemetry: signed by another collector]",
        "unit/attest/test_babyjub.py::test_another_signature_is_none",
        "unit/attest/test_babyjub.py::test_an_identity_key_would_accept_any_message_so_it_is_refused",
    ),
    "a probe whose signature is missing or false": (
        "unit/attest/test_probe_checks.py::test_a_missing_one_fails_where_the_terms_require_it",
        "unit/attest/test_probe_checks.py::test_a_false_one_fails",
        "unit/attest/test_probe_checks.py::test_the_collector_signs_for_nobody_else",
    ),
    "blocks sealed before they were over, or long after": (
        "unit/attest/test_seal_checks.py::test_a_seal_is_on_time_with_its_grace",
        "unit/attest/test_seal_checks.py::test_a_block_that_was_sealed_anew_is_said_to_be_with_its_reason",
    ),
    "maintenance that was announced afterwards": (
        "unit/attest/test_announcement_checks.py::test_an_announcement_after_the_window_s_start_is_no_announcement",
        "unit/attest/test_exclusion_checks.py::test_a_lie_about_exclusions_is_found",
    ),
    "a log that shows others something else": (
        "unit/attest/test_witness_quorum.py::test_too_few_pinned_witnesses",
        "unit/attest/test_witness_quorum.py::test_a_cosignature_of_another_tree_is_false",
        "contracts/test_batches.py::test_a_log_does_not_shrink",
        "contracts/test_batches.py::test_one_size_has_one_root",
    ),
    "a block passed off as one that an earlier version was counted from": (
        f"{_SEALS}[called one of the first]",
        f"{_SEALS}[called one of the second]",
        f"{_SEALS}[first sealed behind the first]",
    ),
    "a block sealed twice": (
        f"{_BUNDLES}[telemetry: a block sealed twice]",
        "unit/attest/test_equivocation.py",
    ),
    "a proof left out of a statement that must have one": (
        f"{_PROOFS}::test_a_lie_fails_in_its_check[proof: the proof left out]",
        "unit/attest/test_verification_lies.py::test_only_the_opening_shows_that_a_period_was_withheld_by_a_lie",
    ),
    "a value of a bundle that nothing binds": (
        "unit/attest/test_verification_binding.py::test_without_the_issuers_key_no_value_can_be_changed",
        "unit/attest/test_verification_binding.py::test_with_the_issuers_key_only_the_block_can_be_changed",
    ),
    "requests called undecided, so that nothing need be proved or sealed": (
        f"{_BUNDLES}[statement: requests called undecided]",
    ),
    "another window left out than the exclusions cover": (
        "unit/attest/test_recount.py::test_an_opening_leaves_out_the_windows_that_exclusions_cover_and_no_others",
    ),
    "a second first version, under another tenant of the log": (
        f"{_BUNDLES}[log: a seal of another tenant]",
        f"{_BUNDLES}[log: a second first version, of another tenant]",
    ),
    "a statement issued before its period was over": (f"{_BUNDLES}[log: issued before its period was over]",),
    "another credit than the terms give, where no circuit attests them": (
        "unit/attest/test_credit_checks.py::test_where_no_rule_looks_at_incidents_every_step_follows_from_totals",
        "unit/attest/test_credit_checks.py::test_a_lie_in_the_trace_is_caught",
    ),
    "less time to claim or dispute than the terms give": (
        f"{_BUNDLES}[statement: less time to claim]",
        f"{_BUNDLES}[statement: no time to claim, where the terms give some]",
        "vectors/test_kinds.py::test_only_the_time_that_the_terms_give_is_taken",
    ),
    "a period cut by a notice that the issuer gave afterwards": (
        "unit/attest/test_notice_checks.py::test_a_period_that_the_issuer_cut_afterwards_is_said_to_be",
    ),
    "lines of a bundle's own in the report about it": (
        "unit/cli/test_verify.py::test_a_bundle_puts_no_lines_of_its_own_into_the_report",
        "unit/cli/test_verify.py::test_nor_into_a_message",
    ),
    # --- registry ---
    "another chain, registry, period or version": (
        f"{_STATEMENTS}::test_a_proof_made_for_something_else_is_refused",
        f"{_PROOFS}::test_a_lie_fails_in_its_check[context: another registry]",
        f"{_BUNDLES}[statement: statement version 2]",
        f"{_BUNDLES}[statement: another day]",
    ),
    "two periods of one start": (
        f"{_STATEMENTS}::test_one_start_has_one_end",
        f"{_STATEMENTS}::test_gaps_and_overlaps_are_refused",
    ),
    "a period recorded by the old terms beyond the start of the new ones": (
        f"{_STATEMENTS}::test_no_statement_reaches_beyond_the_start_of_the_next_terms",
    ),
    "a restatement that skips a version or replaces something else": (
        f"{_STATEMENTS}::test_no_version_is_skipped",
        f"{_STATEMENTS}::test_a_restatement_of_something_else_is_refused",
        f"{_STATEMENTS}::test_a_second_version_two_is_refused",
    ),
    "a swapped verifier": (
        "contracts/test_registration.py::test_a_verifier_is_never_replaced",
        "contracts/test_roles.py::test_a_verifier_whose_code_was_swapped_is_not_asked",
        f"{_STATEMENTS}::test_a_proof_under_another_key_is_refused",
        f"{_NODE}::test_a_lie_of_the_node_that_contradicts_anything_fails[an event checked by another verifier]",
        f"{_AGREE}[another key]",
    ),
    "too little gas": (
        f"{_STATEMENTS}::test_too_little_gas_reverts_and_records_nothing",
        f"{_VERIFIER}::test_too_little_gas_never_looks_like_a_wrong_proof",
    ),
    "an observer who squats on the first version of a period": (
        "contracts/test_front_running.py::test_an_observer_takes_no_period",
        f"{_STATEMENTS}::test_only_parties_record",
    ),
    "a re-randomised proof that is sent first": (
        "chain/test_recorded_by_the_customer.py::test_a_proof_that_the_customer_made_of_ours_is_in_the_bundle",
        "chain/test_recorded_by_the_customer.py::test_a_recording_with_bytes_behind_it_is_no_anchor",
        "contracts/test_front_running.py::test_an_observer_who_is_faster_gains_nothing",
        "contracts/test_front_running.py::test_a_party_that_is_faster_records_the_same_statement_once",
    ),
    # --- anchoring, and nodes ---
    "a statement anchored twice or never": (
        "chain/test_killed_workers.py::test_a_worker_may_die_at_any_step",
        f"{_ANCHORING}::test_workers_that_get_the_same_task_send_one_transaction",
        f"{_ANCHORING}::test_a_dropped_recording_is_sent_again_byte_for_byte",
        "chain/test_stuck_fees.py::test_a_stuck_recording_is_replaced_with_its_nonce_and_higher_fees",
        "chain/test_bad_nodes.py::test_statements_are_recorded_once_through_a_bad_node",
    ),
    "an anchor that no chain holds": (
        f"{_NODE}::test_a_transaction_that_was_reorganised_away_fails",
        f"{_NODE}::test_a_bundle_that_says_something_else_than_the_chain_fails[a transaction that nobody sent]",
        f"{_NODE}::test_the_transaction_that_registered_the_terms_records_nothing",
    ),
    "an anchor that was confirmed and is undone": (
        f"{_WATCHED}::test_a_deep_reorganisation_is_mended_exactly_once",
        f"{_WATCHED}::test_what_was_restated_is_recorded_again_in_its_order",
        f"{_WATCHED}::test_what_is_stuck_when_it_is_undone_is_replaced",
        f"{_WATCHED}::test_two_that_look_at_once_undo_and_log_once",
        f"{_WATCHED}::test_a_watcher_may_die_at_any_step",
    ),
    "a node that says once that an anchor is gone, or final": (
        "unit/app/test_chain_watch.py::test_one_wrong_answer_undoes_nothing_and_two_looks_that_agree_do",
        "unit/app/test_chain_watch.py::test_one_look_makes_no_anchor_final",
        f"{_WATCHED}::test_through_a_node_that_answers_late_wrongly_or_twice",
    ),
    "a party that takes the place of a period's statement": (
        f"{_WATCHED}::test_an_observer_takes_no_place_and_a_party_that_does_is_seen",
    ),
    "a batch published twice, or never": (
        "chain/test_roots.py::test_a_worker_may_die_at_any_step_of_a_batch",
        "chain/test_roots.py::test_workers_publish_one_root_on_each_chain_and_a_verifier_finds_both",
        "chain/test_roots.py::test_what_a_reorganisation_drops_is_sent_again_and_what_never_stood_is_not_found",
        f"{_ROOTS}::test_two_workers_make_one_batch_and_one_transaction",
    ),
    "a batch root that a reorganisation took after its confirmations, and nobody said so": (
        "chain/test_undone_roots.py::test_two_roots_that_a_deep_reorganisation_took_are_published_again_in_their_order",
        "unit/app/test_chain_batches.py::test_a_batch_that_two_looks_miss_is_undone_and_queued_once",
        "unit/app/test_chain_batches.py::test_one_wrong_answer_of_a_node_undoes_nothing",
    ),
    "a batch root of other statements, another checkpoint, chain, registry or sender": (
        f"{_ROOTS}::test_a_root_that_is_not_as_it_says_does_not_hold",
        f"{_ROOTS}::test_the_path_of_another_statement_does_not_lead_from_this_one",
        f"{_ROOTS}::test_pins_decide_which_chains_roots_count_and_who_publishes_there",
    ),
    "a recording left out for a root on a chain of the issuer's choice": (
        f"{_ROOTS}::test_without_a_recording_a_root_at_the_registry_is_enough_and_one_elsewhere_is_not",
    ),
    "a statement that a later one replaced": (f"{_NODE}::test_a_later_restatement_is_said",),
    "a node that answers without end, or so deep that no decoder comes back": (
        "unit/attest/test_json_rpc.py::test_a_node_that_never_comes_to_an_end_is_waited_for_no_longer_than_the_deadline",
        "unit/attest/test_json_rpc.py::test_what_is_no_answer_is_named",
    ),
    "a node that lies": (
        f"{_NODE}::test_a_lie_of_the_node_that_contradicts_anything_fails",
        f"{_NODE}::test_a_node_that_hides_a_restatement_is_believed_so_every_line_says_by_this_node",
    ),
}

GROUPS = {
    "good traffic invented in unused tail windows": "The nine lies of the first sketch",
    "an incident dropped": "Incidents",
    "a proof under a key without contribution": "Proofs and keys",
    "a bad window that is zeroed, dropped or excluded": "Windows, counts, credit",
    "another chain, registry, period or version": "The registry",
    "a statement anchored twice or never": "Anchoring, and nodes",
}
"""The lie with which a group begins in docs/threats.md, and what the group is called there."""

HEAD = """# What was tried against statements

A dishonest provider holds the issuer's key, the log's key, the collector's key, and chooses every number that it is not
held to. Observers see the chain, and a node may answer what it likes. Each lie below is told by the tests beside it:
refused, or shown to the reader where nothing could refuse it. What no bundle can show stands in
[attestation-format.md](attestation-format.md#verifying), and `sla-ledger verify` repeats it under every report.

This page is written by `python -m tests.attestation_lies`, and a test holds it to the tests that there are.
"""


def page() -> str:
    """docs/threats.md."""
    lines = [HEAD]
    for lie, tests in ATTESTATION_LIES.items():
        if lie in GROUPS:
            lines.append(f"\n## {GROUPS[lie]}\n\n| lie | tried by |\n|---|---|\n")
        lines.append(f"| {lie} | {'<br>'.join(map(_link, tests))} |\n")
    return "".join(lines)


def _link(test: str) -> str:
    path, _, name = test.partition("::")
    function, _, case = name.removesuffix("]").partition("[")
    words = (function or Path(path).stem).removeprefix("test_").replace("_", " ")
    # Groups of cases are named "group: case".
    told = f"{words}: {case.rpartition(': ')[2].replace('_', ' ')}" if case else words
    return f"[{told}](../tests/{path})"


if __name__ == "__main__":
    (Path(__file__).resolve().parents[1] / "docs" / "threats.md").write_text(page())
