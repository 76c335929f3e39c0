"""Delivers messages that wait: delay levels (Apache: ScheduleMessageService) and delivery at any time (TimerMessageStore)."""
