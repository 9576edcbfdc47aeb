"""The library: skills that know when they apply.

Languages are parsed and analysed into features and facts; cards carry conditions over those facts;
retrieval decides which cards apply to a target and explains every inclusion and exclusion;
transforms edit. Imports gate's value types only.
"""
