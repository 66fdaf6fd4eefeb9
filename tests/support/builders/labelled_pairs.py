"""Pairs of facts, labelled by hand, that embedding models are measured on.

SAME: both say the same. CLASH: the second ends or denies the first. BESIDE: alike, and both true. OTHER: unlike.
ENDING: the second ends the first with nothing in its place, often in quite other words.
"""

SAME_MEANING = """\
Alice lives in Berlin. | Alice's home is in Berlin.
Alice lives in Berlin. | Alice is living in Berlin.
Bob works at Siemens. | Bob is employed by Siemens.
Bob works as a nurse. | Bob is a nurse.
Carol is allergic to peanuts. | Carol has a peanut allergy.
Carol cannot eat peanuts because of an allergy. | Carol has an allergy to peanuts.
Dave has a dog called Rex. | Dave's dog is named Rex.
Dave owns a dog named Rex. | Rex is Dave's dog.
Erin is a vegetarian. | Erin does not eat meat.
Erin follows a vegetarian diet. | Erin is a vegetarian.
Frank's sister is called Anna. | Frank has a sister named Anna.
Frank has two children. | Frank is the father of two kids.
Grace was born on 3 May 1990. | Grace's birthday is 3 May 1990.
Grace is 34 years old. | Grace's age is 34.
Henry prefers window seats. | Henry likes to sit by the window on planes.
Henry uses VS Code as his editor. | Henry's editor is VS Code.
Ivy runs every Monday morning. | Ivy goes running on Monday mornings.
Ivy plays the violin. | Ivy is a violin player.
Jack is planning a trip to Japan in May. | Jack will travel to Japan in May.
Jack wants to visit Japan in May. | In May, Jack intends to go to Japan.
Kate's salary is 80,000 euros a year. | Kate earns 80,000 euros per year.
Kate banks with ING. | ING is Kate's bank.
Leo speaks Spanish and French. | Leo can speak French and Spanish.
Leo was promoted to team lead. | Leo became a team lead.
Mia is married to Tom. | Tom is Mia's husband.
Mia got engaged to Tom last week. | Last week Mia became engaged to Tom.
Nora has type 1 diabetes. | Nora is a type 1 diabetic.
Nora is scared of flying. | Nora has a fear of flying.
Oscar likes jazz. | Oscar enjoys jazz music.
Oscar's favourite colour is green. | Green is Oscar's favourite colour.
Paul graduated from MIT in 2015. | Paul finished his degree at MIT in 2015.
Paul drives a Toyota. | Paul's car is a Toyota.
Quinn meets her therapist on Thursdays. | Quinn has therapy every Thursday.
Quinn is learning Italian. | Quinn studies Italian.
Rita moved to Lisbon in 2021. | In 2021 Rita relocated to Lisbon.
Rita prefers to be called Ri. | Rita likes people to call her Ri.
Sam does not drink coffee. | Sam never drinks coffee.
Sam's deadline for the report is Friday. | Sam has to finish the report by Friday.
Tina volunteers at an animal shelter. | Tina helps out as a volunteer at an animal shelter.
Tina painted a lake at sunrise. | Tina made a painting of a sunrise over a lake.
"""

CONTRADICTING = """\
Alice lives in Berlin. | Alice lives in Munich.
Alice lives in Berlin. | Alice moved to Munich.
Alice lives in Berlin. | Alice has moved from Berlin to Munich.
Bob works at Siemens. | Bob works at Bosch.
Bob works at Siemens. | Bob left Siemens and started at Bosch.
Bob works as a nurse. | Bob is now a teacher.
Carol is allergic to peanuts. | Carol is not allergic to peanuts.
Carol is allergic to peanuts. | Carol's peanut allergy turned out to be wrong.
Dave has a dog called Rex. | Dave's dog Rex died.
Dave's dog is called Rex. | Dave's dog is called Max.
Erin is a vegetarian. | Erin eats meat again.
Erin is a vegetarian. | Erin is no longer a vegetarian.
Frank's sister is called Anna. | Frank's sister is called Maria.
Frank has two children. | Frank has three children.
Grace was born on 3 May 1990. | Grace was born on 5 May 1990.
Grace is 34 years old. | Grace turned 35.
Henry prefers window seats. | Henry prefers aisle seats.
Henry uses VS Code as his editor. | Henry switched to Cursor.
Henry's editor is VS Code. | Henry's editor is Cursor.
Ivy runs every Monday morning. | Ivy runs every Friday evening.
Ivy plays the violin. | Ivy gave up the violin.
Jack is planning a trip to Japan in May. | Jack cancelled his trip to Japan.
Jack is planning a trip to Japan in May. | Jack's trip to Japan was put off to October.
Kate's salary is 80,000 euros a year. | Kate's salary is 95,000 euros a year.
Kate banks with ING. | Kate banks with Revolut.
Leo speaks Spanish. | Leo does not speak Spanish.
Leo is a team lead. | Leo was promoted to director.
Mia is married to Tom. | Mia is divorced from Tom.
Mia is engaged to Tom. | Mia married Tom.
Nora is scared of flying. | Nora has lost her fear of flying.
Nora takes 10 units of insulin. | Nora takes 14 units of insulin.
Oscar likes jazz. | Oscar does not like jazz any more.
Oscar's favourite colour is green. | Oscar's favourite colour is blue.
Paul drives a Toyota. | Paul sold his Toyota and bought a Tesla.
Paul's phone number is 555 0100. | Paul's phone number is 555 0199.
Quinn meets her therapist on Thursdays. | Quinn meets her therapist on Tuesdays.
Rita lives alone. | Rita moved in with her boyfriend.
Sam does not drink coffee. | Sam drinks three cups of coffee a day.
Sam's deadline for the report is Friday. | Sam's deadline for the report was moved to Monday.
Tina is single. | Tina has a new girlfriend.
"""

COMPATIBLE = """\
Oscar likes jazz. | Oscar likes rock.
Oscar likes apples. | Oscar likes pears.
Leo speaks Spanish. | Leo speaks French.
Dave has a dog. | Dave has a cat.
Dave has a dog called Rex. | Dave has a cat called Tom.
Mia's son is called Max. | Mia's daughter is called Lena.
Mia's son Max is 5. | Mia's son Leo is 7.
Carol is allergic to peanuts. | Carol is allergic to cats.
Carol is allergic to peanuts. | Carol is allergic to shellfish.
Ivy runs every Monday. | Ivy runs every Friday.
Jack visited Rome in 2019. | Jack visited Paris in 2021.
Jack has to call the bank tomorrow. | Jack has to call his mother tomorrow.
Rita reads crime novels. | Rita reads science fiction.
Nora takes insulin. | Nora takes aspirin.
Paul plays tennis. | Paul plays chess.
Bob has a meeting with Ann on Monday. | Bob has a meeting with Tim on Tuesday.
Tina hates mushrooms. | Tina hates olives.
Kate has an account at ING. | Kate has an account at Revolut.
Sam's brother lives in Oslo. | Sam's sister lives in Oslo.
Sam's brother is called Tim. | Sam's brother is called Tom.
"""

UNRELATED = """\
Alice lives in Berlin. | Alice has a cat.
Alice lives in Berlin. | Alice likes spicy food.
Alice lives in Berlin. | Alice works as an architect.
Bob works at Siemens. | Bob plays football on Sundays.
Bob works at Siemens. | Bob is allergic to pollen.
Bob works as a nurse. | Bob's mother lives in Spain.
Carol is allergic to peanuts. | Carol lives in Oslo.
Carol is allergic to peanuts. | Carol reads crime novels.
Dave has a dog called Rex. | Dave is learning to cook.
Dave has a dog called Rex. | Dave flies to Rome tomorrow.
Erin is a vegetarian. | Erin rides her bike to work.
Erin is a vegetarian. | Erin speaks Polish.
Frank's sister is called Anna. | Frank collects stamps.
Frank has two children. | Frank works for a bank.
Grace was born on 3 May 1990. | Grace prefers tea.
Grace is 34 years old. | Grace has a red car.
Henry prefers window seats. | Henry studies law.
Henry uses VS Code as his editor. | Henry hates mushrooms.
Ivy runs every Monday morning. | Ivy is a dentist.
Ivy plays the violin. | Ivy bought a house.
Jack is planning a trip to Japan in May. | Jack has a broken arm.
Jack is planning a trip to Japan in May. | Jack's brother is a pilot.
Kate's salary is 80,000 euros a year. | Kate likes to swim.
Kate banks with ING. | Kate is afraid of spiders.
Leo speaks Spanish. | Leo has a twin brother.
Leo is a team lead. | Leo grows tomatoes.
Mia is married to Tom. | Mia wants to learn to dive.
Mia is engaged to Tom. | Mia takes the bus to work.
Nora is scared of flying. | Nora makes pottery.
Nora takes 10 units of insulin. | Nora's favourite band is Blur.
Oscar likes jazz. | Oscar has to renew his passport.
Oscar's favourite colour is green. | Oscar lives on the third floor.
Paul drives a Toyota. | Paul sings in a choir.
Paul's phone number is 555 0100. | Paul is on a diet.
Quinn meets her therapist on Thursdays. | Quinn has a garden.
Quinn is learning Italian. | Quinn's laptop is broken.
Rita moved to Lisbon in 2021. | Rita likes horror films.
Sam does not drink coffee. | Sam is a chess player.
Sam's deadline for the report is Friday. | Sam has blue eyes.
Tina is single. | Tina works night shifts.
"""

ENDED_BY = """\
Alice works at Acme as an analyst. | Alice quit her job.
Alice works at Acme. | Alice no longer works at Acme.
Bob is a nurse. | Bob has retired.
Bob studies law at the university. | Bob dropped out.
Carol runs every morning. | Carol has stopped running.
Carol takes 10 units of insulin. | Carol does not take insulin any more.
Dave is married to Eva. | Dave and Eva got divorced.
Dave's girlfriend is called Nina. | Dave broke up with Nina.
Erin is a vegetarian. | Erin has given up being a vegetarian.
Erin has a dog called Rex. | Rex died last week.
Frank lives in an apartment in Berlin. | Frank gave up his apartment in Berlin.
Frank plays the violin in an orchestra. | Frank left the orchestra.
Grace has a subscription to a newspaper. | Grace cancelled her newspaper subscription.
Grace drives a Toyota. | Grace sold her car.
Henry is planning a trip to Japan in May. | Henry's trip to Japan is called off.
Henry smokes a pack of cigarettes a day. | Henry quit smoking.
Ivy meets her therapist on Thursdays. | Ivy has ended her therapy.
Ivy is learning Italian. | Ivy gave up on learning Italian.
Jack banks with ING. | Jack closed his account at ING.
Jack is a member of a gym. | Jack's gym membership has ended.
Kate is engaged to Tom. | Kate called off the engagement.
Kate rents a garden plot. | Kate gave the garden plot back.
Leo leads the payments team. | Leo stepped down as team lead.
Leo uses VS Code as his editor. | Leo stopped using VS Code.
"""


def parse_pairs(table: str) -> list[tuple[str, str]]:
    """The two facts of each line."""
    return [(first, second) for first, _, second in (line.partition(" | ") for line in table.splitlines())]
