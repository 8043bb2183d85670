package org.ondeviceprofiler.core

import org.junit.Assert.assertEquals
import org.junit.Assert.assertTrue
import org.junit.Test

class PlanRulesTest {
    private val components = Examples.bundle().components

    private fun refusal(case: Map<String, Json>): String? {
        val given = (parseJson(Examples.bytes("plan.json")) as JsonObject).members
        val changed = JsonObject(given + (case.getValue("change") as JsonObject).members)
        val constants = (case.getValue("file_constants") as JsonArray).items.map { (it as JsonText).value }
        return try {
            checkPlan(decode(changed.write().toByteArray(), "Plan", "case", Plan::read), components, constants.toSet())
            null
        } catch (error: InvalidRecord) {
            error.message
        }
    }

    @Test
    fun `every shared case is judged as all runners judge it, word for word`() {
        val cases = Examples.lines("plan_rules.jsonl").map { (parseJson(it) as JsonObject).members }
        assertTrue(cases.size > 40)
        for (case in cases) {
            assertEquals((case.getValue("refusal") as? JsonText)?.value, refusal(case))
        }
    }
}
